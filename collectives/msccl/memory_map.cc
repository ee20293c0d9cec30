#include "collectives/msccl/memory_map.h"

#include <algorithm>
#include <array>
#include <utility>

#include "collectives/schedule/promise.h"
#include "core/status.h"

namespace ranklab::collectives {
namespace {

constexpr std::array<std::pair<std::string_view, Collective>, 9> kNames = {{
    {"allreduce", Collective::kAllReduce},
    {"allgather", Collective::kAllGather},
    {"reducescatter", Collective::kReduceScatter},
    {"reduce_scatter", Collective::kReduceScatter},
    {"broadcast", Collective::kBroadcast},
    {"reduce", Collective::kReduce},
    {"gather", Collective::kGather},
    {"scatter", Collective::kScatter},
    {"alltoall", Collective::kAllToAll},
}};

// Of all GPUs; at a gather's or scatter's other ranks a buffer may be missing.
absl::StatusOr<std::int32_t> OneSize(const MscclProgram& program, std::int32_t MscclGpu::*chunks,
                                     bool may_be_missing, std::string_view buffer) {
  std::int32_t size = 0;
  for (const MscclGpu& gpu : program.gpus) {
    size = std::max(size, gpu.*chunks);
  }
  for (std::size_t id = 0; id < program.gpus.size(); ++id) {
    const std::int32_t own = program.gpus[id].*chunks;
    if (own != size && !(may_be_missing && own == 0)) {
      return InvalidArgument("gpu %d: %d %s chunks, but another gpu has %d", id, own, buffer, size);
    }
  }
  return size;
}

}  // namespace

std::optional<Collective> CollectiveNamed(std::string_view msccl_name) {
  for (const auto& [name, collective] : kNames) {
    if (name == msccl_name) {
      return collective;
    }
  }
  return std::nullopt;
}

std::optional<std::string_view> MscclNameOf(Collective collective) {
  for (const auto& [name, named] : kNames) {
    if (named == collective) {
      return name;
    }
  }
  return std::nullopt;
}

absl::StatusOr<MemoryMap> MemoryMap::Make(const MscclProgram& program) {
  const std::optional<Collective> collective = CollectiveNamed(program.collective);
  if (!collective) {
    return Unimplemented("coll \"%s\" promises nothing that could be proved", program.collective);
  }
  MemoryMap map;
  map.collective_ = *collective;
  ASSIGN_OR_RETURN(map.input_size_, OneSize(program, &MscclGpu::input_chunks,
                                            *collective == Collective::kScatter, "input"));
  ASSIGN_OR_RETURN(map.output_size_,
                   OneSize(program, &MscclGpu::output_chunks, HasRoot(*collective), "output"));
  for (const MscclGpu& gpu : program.gpus) {
    map.scratch_ = std::max(map.scratch_, gpu.scratch_chunks);
  }
  if (program.out_of_place) {
    map.input_ = map.input_size_;
    map.output_ = map.output_size_;
    return map;
  }
  const auto ranks = static_cast<std::int32_t>(program.gpus.size());
  switch (ShapeOf(*collective)) {
    case Shape::kGrows:
      map.output_size_ = std::max(map.output_size_, ranks * map.input_size_);
      map.input_at_rank_ = map.input_size_;
      break;
    case Shape::kShrinks:
      // Not what the file says: the last rank's output would end behind the buffer it lies in.
      map.output_size_ = map.input_size_ / ranks;
      map.output_at_rank_ = map.output_size_;
      break;
    case Shape::kWhole:
    case Shape::kExchanges:
      map.output_size_ = map.input_size_;
      break;
  }
  map.input_ = std::max(map.input_size_, map.output_size_);
  return map;
}

absl::StatusOr<std::int32_t> MemoryMap::ChunkAt(Rank gpu, MscclBuffer buffer, std::int32_t offset,
                                                std::int32_t count) const {
  const bool in_place = output_ == 0;
  std::int32_t size = scratch_;
  std::int32_t first = input_ + output_;
  if (buffer == MscclBuffer::kInput) {
    size = input_size_;
    first = gpu * input_at_rank_;
  } else if (buffer == MscclBuffer::kOutput) {
    size = output_size_;
    first = in_place ? gpu * output_at_rank_ : input_;
  }
  if (offset < 0 || count < 1 || offset > size - count) {
    return InvalidArgument("%d chunks from %d on lie outside of buffer %c, which has %d", count,
                           offset, static_cast<char>(buffer), size);
  }
  return first + offset;
}

}  // namespace ranklab::collectives
