#include "collectives/msccl/export.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "collectives/msccl/memory_map.h"
#include "collectives/schedule/conflicts.h"
#include "collectives/schedule/promise.h"
#include "core/status.h"

namespace ranklab::collectives {
namespace {

struct Location {
  MscclBuffer buffer = MscclBuffer::kInput;
  std::int32_t offset = -1;
};

// In place the whole buffer is the output of a collective that grows, and else the input.
Location LocationOf(const Schedule& schedule, std::int32_t chunk) {
  const bool grows = ShapeOf(schedule.collective) == Shape::kGrows;
  if (chunk < schedule.input_chunks) {
    return {schedule.output_chunks == 0 && grows ? MscclBuffer::kOutput : MscclBuffer::kInput,
            chunk};
  }
  if (chunk < schedule.first_scratch_chunk()) {
    return {MscclBuffer::kOutput, chunk - schedule.input_chunks};
  }
  return {MscclBuffer::kScratch, chunk - schedule.first_scratch_chunk()};
}

MscclStepType TypeOf(OpKind kind) {
  switch (kind) {
    case OpKind::kSend:
      return MscclStepType::kSend;
    case OpKind::kRecv:
      return MscclStepType::kRecv;
    case OpKind::kRecvReduce:
      return MscclStepType::kRecvReduceCopy;
    case OpKind::kCopy:
      return MscclStepType::kCopy;
    case OpKind::kReduce:
      break;
  }
  return MscclStepType::kReduce;
}

class GpuWriter {
 public:
  explicit GpuWriter(const Schedule& schedule)
      : schedule_(schedule), conflicts_(schedule.chunks()) {}

  MscclGpu Write(const std::vector<Op>& ops) && {
    for (OpIndex i = 0; i < static_cast<OpIndex>(ops.size()); ++i) {
      Add(i, ops[static_cast<std::size_t>(i)]);
    }
    return std::move(gpu_);
  }

 private:
  using Key = std::tuple<std::int32_t, Rank, bool>;  // channel, peer, sends; local: {0, -1, false}
  struct Written {
    std::int32_t threadblock = 0;
    std::int32_t step = 0;
  };

  void Add(OpIndex index, const Op& op) {
    const std::int32_t threadblock = ThreadblockOf(op);
    std::vector<MscclStep>& steps = StepsOf(threadblock);
    MscclStep step = StepOf(op);
    for (const auto& [other, other_step] : NewDependencies(index, op, threadblock)) {
      if (step.after_threadblock >= 0) {  // a step can wait for one only
        MscclStep nop;
        nop.after_threadblock = step.after_threadblock;
        nop.after_step = step.after_step;
        steps.push_back(nop);
      }
      step.after_threadblock = other;
      step.after_step = other_step;
      StepsOf(other)[static_cast<std::size_t>(other_step)].is_waited_for = true;
    }
    written_.push_back({threadblock, static_cast<std::int32_t>(steps.size())});
    steps.push_back(step);
  }

  // Of each other thread block that wrote or read what `op` touches, the last such step, if this
  // thread block has not waited for it yet.
  std::map<std::int32_t, std::int32_t> NewDependencies(OpIndex index, const Op& op,
                                                       std::int32_t threadblock) {
    std::map<std::int32_t, std::int32_t> wanted;
    for (const auto& conflict : conflicts_.Next(index, op)) {
      const Written& earlier = written_[static_cast<std::size_t>(conflict.earlier)];
      if (earlier.threadblock != threadblock) {
        std::int32_t& step = wanted.try_emplace(earlier.threadblock, -1).first->second;
        step = std::max(step, earlier.step);
      }
    }
    std::map<std::int32_t, std::int32_t>& waited = waited_[static_cast<std::size_t>(threadblock)];
    std::erase_if(wanted, [&](const auto& entry) {
      std::int32_t& seen = waited.try_emplace(entry.first, -1).first->second;
      const bool is_new = entry.second > seen;
      seen = std::max(seen, entry.second);
      return !is_new;
    });
    return wanted;
  }

  std::int32_t ThreadblockOf(const Op& op) {
    const bool local = IsLocal(op.kind);
    const bool sends = op.kind == OpKind::kSend;
    const Key key{local ? 0 : op.channel, op.peer, sends};
    const auto next = static_cast<std::int32_t>(gpu_.threadblocks.size());
    const auto [found, is_new] = threadblocks_.try_emplace(key, next);
    if (is_new) {
      MscclThreadblock threadblock;
      threadblock.channel = std::get<0>(key);
      (sends ? threadblock.send : threadblock.recv) = op.peer;
      gpu_.threadblocks.push_back(std::move(threadblock));
      waited_.emplace_back();
    }
    return found->second;
  }

  MscclStep StepOf(const Op& op) const {
    const Location target = LocationOf(schedule_, op.chunk);
    const Location source = IsLocal(op.kind) ? LocationOf(schedule_, op.source) : target;
    MscclStep step;
    step.type = TypeOf(op.kind);
    step.source = source.buffer;
    step.source_offset = source.offset;
    step.destination = target.buffer;
    step.destination_offset = target.offset;
    step.count = op.count;
    return step;
  }

  std::vector<MscclStep>& StepsOf(std::int32_t threadblock) {
    return gpu_.threadblocks[static_cast<std::size_t>(threadblock)].steps;
  }

  const Schedule& schedule_;
  ConflictScan conflicts_;
  MscclGpu gpu_;
  std::map<Key, std::int32_t> threadblocks_;
  std::vector<std::map<std::int32_t, std::int32_t>> waited_;  // by thread block: step of another
  std::vector<Written> written_;                              // by op
};

// Sizes of the buffers as MSCCL counts them: in place both name parts of one.
void SetSizes(const Schedule& schedule, MscclGpu& gpu) {
  gpu.input_chunks = schedule.input_chunks;
  gpu.output_chunks = schedule.output_chunks;
  gpu.scratch_chunks = schedule.scratch_chunks;
  if (schedule.output_chunks > 0) {
    return;
  }
  const std::int32_t block = schedule.input_chunks / schedule.group_size;
  switch (ShapeOf(schedule.collective)) {
    case Shape::kGrows:
      gpu.input_chunks = block;
      gpu.output_chunks = schedule.input_chunks;
      break;
    case Shape::kShrinks:
      gpu.output_chunks = block;
      break;
    case Shape::kWhole:
    case Shape::kExchanges:
      break;
  }
}

}  // namespace

absl::StatusOr<MscclProgram> ProgramOf(const Schedule& schedule) {
  const auto collective = MscclNameOf(schedule.collective);
  if (!collective || schedule.root != 0) {
    return Unimplemented("MSCCL has no %s from rank %d", NameOf(schedule.collective),
                         schedule.root);
  }
  MscclProgram program;
  program.name = schedule.name;
  program.collective = *collective;
  program.in_place = schedule.output_chunks == 0;
  program.out_of_place = !program.in_place;
  program.chunks_per_loop = std::max(schedule.input_chunks, schedule.output_chunks);
  for (Rank rank = 0; rank < schedule.group_size; ++rank) {
    program.gpus.push_back(GpuWriter(schedule).Write(schedule.ops_of(rank)));
    SetSizes(schedule, program.gpus.back());
    for (const MscclThreadblock& threadblock : program.gpus.back().threadblocks) {
      program.channels = std::max(program.channels, threadblock.channel + 1);
    }
  }
  return program;
}

}  // namespace ranklab::collectives
