// An MSCCL program as its XML has it: for each GPU thread blocks, for each of them steps in order.
// A thread block has at most one peer to send to and one to receive from, on one channel. Source:
// microsoft/msccl-tools and the parser of ROCm/rccl.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/status.h>

#include "core/status.h"
#include "core/units.h"

namespace ranklab::collectives {

enum class MscclStepType : std::uint8_t {
  kSend,                // s
  kRecv,                // r
  kCopy,                // cpy
  kReduce,              // re: destination = destination (op) source
  kRecvCopySend,        // rcs
  kRecvReduceSend,      // rrs: sends received (op) source, stores nothing
  kRecvReduceCopy,      // rrc: destination = received (op) source
  kRecvReduceCopySend,  // rrcs: the same, and sends it
  kNop,                 // nop: carries a dependency
};
inline constexpr int kMscclStepTypes = 9;
std::string_view NameOf(MscclStepType type);  // "rrcs"

bool Receives(MscclStepType type);
bool Sends(MscclStepType type);
bool Reduces(MscclStepType type);

enum class MscclBuffer : char { kInput = 'i', kOutput = 'o', kScratch = 's' };

// `count` chunks of a buffer.
struct MscclStep {
  MscclStepType type = MscclStepType::kNop;
  MscclBuffer source = MscclBuffer::kInput;
  std::int32_t source_offset = -1;
  MscclBuffer destination = MscclBuffer::kInput;
  std::int32_t destination_offset = -1;
  std::int32_t count = 0;
  std::int32_t after_threadblock = -1;  // -1: none; else its step after_step must be finished
  std::int32_t after_step = -1;
  bool is_waited_for = false;  // hasdep
};

struct MscclThreadblock {
  Rank send = -1;
  Rank recv = -1;
  std::int32_t channel = 0;
  std::vector<MscclStep> steps;
};

struct MscclGpu {
  std::int32_t input_chunks = 0;
  std::int32_t output_chunks = 0;
  std::int32_t scratch_chunks = 0;
  std::vector<MscclThreadblock> threadblocks;  // by id
};

// "gpu 3, threadblock 1, step 4": how messages name a step.
struct MscclPlace {
  Rank gpu = 0;
  std::int32_t threadblock = 0;
  std::int32_t step = 0;
};
std::string NameOf(const MscclPlace& place);

// InvalidArgument: "PLACE: what".
absl::Status WrongAt(const MscclPlace& place, const std::string& what);

struct MscclProgram {
  std::string name;
  std::string protocol = "Simple";  // Simple, LL, LL128
  std::string collective;           // "allreduce"
  std::int32_t channels = 1;
  std::int32_t chunks_per_loop = 1;
  bool in_place = false;
  bool out_of_place = true;
  std::int64_t min_bytes = 0;
  std::int64_t max_bytes = 0;  // 0: no limit
  std::vector<MscclGpu> gpus;  // by id

  const MscclThreadblock& ThreadblockAt(const MscclPlace& place) const {
    return gpus[static_cast<std::size_t>(place.gpu)]
        .threadblocks[static_cast<std::size_t>(place.threadblock)];
  }
  const MscclStep& StepAt(const MscclPlace& place) const {
    return ThreadblockAt(place).steps[static_cast<std::size_t>(place.step)];
  }
};

// Calls visit(place, threadblock, step) for every step; stops at an error.
template <typename Visit>
absl::Status ForEachStep(const MscclProgram& program, Visit visit) {
  for (std::size_t g = 0; g < program.gpus.size(); ++g) {
    const auto& threadblocks = program.gpus[g].threadblocks;
    for (std::size_t t = 0; t < threadblocks.size(); ++t) {
      for (std::size_t s = 0; s < threadblocks[t].steps.size(); ++s) {
        const MscclPlace place{static_cast<Rank>(g), static_cast<std::int32_t>(t),
                               static_cast<std::int32_t>(s)};
        RETURN_IF_ERROR(visit(place, threadblocks[t], threadblocks[t].steps[s]));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace ranklab::collectives
