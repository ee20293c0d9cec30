// Where an MSCCL program's buffers lie in a schedule's chunk numbers.
#pragma once

#include <optional>

#include <absl/status/statusor.h>

#include "collectives/msccl/program.h"
#include "collectives/schedule/schedule.h"

namespace ranklab::collectives {

// "allreduce", and back. Nothing for a collective that MSCCL has no name for, or that has no
// promise.
std::optional<Collective> CollectiveNamed(std::string_view msccl_name);
std::optional<std::string_view> MscclNameOf(Collective collective);

class MemoryMap {
 public:
  // Errors: Unimplemented, as ScheduleOf; InvalidArgument, GPUs with buffers of different sizes.
  static absl::StatusOr<MemoryMap> Make(const MscclProgram& program);

  Collective collective() const { return collective_; }
  std::int32_t input_chunks() const { return input_; }
  std::int32_t output_chunks() const { return output_; }  // 0: in place
  std::int32_t scratch_chunks() const { return scratch_; }

  // The first of `count` chunks. Errors: InvalidArgument, outside of the buffer.
  absl::StatusOr<std::int32_t> ChunkAt(Rank gpu, MscclBuffer buffer, std::int32_t offset,
                                       std::int32_t count) const;

 private:
  Collective collective_ = Collective::kAllReduce;
  std::int32_t input_ = 0;
  std::int32_t output_ = 0;
  std::int32_t scratch_ = 0;
  // Of a GPU's own buffers; in place both lie in one, at rank times these.
  std::int32_t input_size_ = 0;
  std::int32_t output_size_ = 0;
  std::int32_t input_at_rank_ = 0;
  std::int32_t output_at_rank_ = 0;
};

}  // namespace ranklab::collectives
