#include "collectives/schedule/in_channels.h"

#include <memory>
#include <utility>

#include "core/check.h"

namespace ranklab::collectives {
namespace {

// Input chunks stay before scratch chunks: slice s has [s I, (s+1) I) and behind all inputs
// [s X, (s+1) X) of the scratch.
std::int32_t ChunkInSlice(const Schedule& one, int slices, int slice, std::int32_t chunk) {
  return chunk < one.input_chunks
             ? slice * one.input_chunks + chunk
             : slices * one.input_chunks + slice * one.scratch_chunks + chunk - one.input_chunks;
}

// Op `op` of a list of `size`, as a part of the whole one.
Op InSlice(const Schedule& one, const Slicing& slicing, int slice, OpIndex size, Op op) {
  op.chunk = ChunkInSlice(one, slicing.slices, slice, op.chunk);
  if (IsLocal(op.kind)) {
    op.source = ChunkInSlice(one, slicing.slices, slice, op.source);
  }
  op.channel = slicing.in_turn ? op.channel : slice;
  for (OpIndex& earlier : op.after) {
    earlier = slicing.in_turn ? slice * size + earlier : earlier * slicing.slices + slice;
  }
  return op;
}

// What rank P-1-r does, by rank r among mirrored peers.
std::vector<Op> MirroredList(const Schedule& one, Rank rank) {
  const Rank last = one.group_size - 1;
  std::vector<Op> list = one.ops_of(last - rank);
  for (Op& op : list) {
    op.peer = IsLocal(op.kind) ? op.peer : last - op.peer;
  }
  return list;
}

std::vector<Op> ListOf(const Schedule& one, const Slicing& slicing, Rank rank) {
  const std::vector<Op> plain = one.ops_of(rank);
  const std::vector<Op> mirrored = slicing.mirror_odd ? MirroredList(one, rank) : std::vector<Op>();
  RANKLAB_CHECK(!slicing.mirror_odd || mirrored.size() == plain.size(), "slices of one length");
  const auto slices = static_cast<std::size_t>(slicing.slices);
  std::vector<Op> all;
  all.reserve(slices * plain.size());
  for (std::size_t i = 0; i < slices * plain.size(); ++i) {
    const std::size_t slice = slicing.in_turn ? i / plain.size() : i % slices;
    const std::size_t index = slicing.in_turn ? i % plain.size() : i / slices;
    const std::vector<Op>& list = slicing.mirror_odd && slice % 2 == 1 ? mirrored : plain;
    all.push_back(InSlice(one, slicing, static_cast<int>(slice), static_cast<OpIndex>(plain.size()),
                          list[index]));
  }
  return all;
}

}  // namespace

Schedule InChannels(Schedule schedule, const Slicing& slicing) {
  RANKLAB_CHECK(slicing.slices >= 1 && schedule.output_chunks == 0);
  if (slicing.slices == 1) {
    return schedule;
  }
  Schedule sliced;
  sliced.name = schedule.name;
  sliced.collective = schedule.collective;
  sliced.group_size = schedule.group_size;
  sliced.root = schedule.root;
  sliced.digits = schedule.digits;
  sliced.input_chunks = slicing.slices * schedule.input_chunks;
  sliced.scratch_chunks = slicing.slices * schedule.scratch_chunks;
  const auto one = std::make_shared<const Schedule>(std::move(schedule));
  sliced.ops_of = [one, slicing](Rank rank) { return ListOf(*one, slicing, rank); };
  if (one->scratch_like != nullptr) {
    sliced.scratch_like = [one](Rank rank, std::int32_t chunk) {
      const std::int32_t slice = chunk / one->scratch_chunks;
      return slice * one->input_chunks + one->scratch_like(rank, chunk % one->scratch_chunks);
    };
  }
  return sliced;
}

}  // namespace ranklab::collectives
