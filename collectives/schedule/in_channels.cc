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

// One slice's list, as a part of the whole one.
std::vector<Op> SliceOf(const Schedule& one, const Slicing& slicing, int slice, Rank rank) {
  const Rank last = one.group_size - 1;
  const bool mirrored = slicing.mirror_odd && slice % 2 == 1;
  std::vector<Op> list = one.ops_of(mirrored ? last - rank : rank);
  const auto size = static_cast<OpIndex>(list.size());
  for (Op& op : list) {
    if (mirrored && !IsLocal(op.kind)) {
      op.peer = last - op.peer;
    }
    op.chunk = ChunkInSlice(one, slicing.slices, slice, op.chunk);
    if (IsLocal(op.kind)) {
      op.source = ChunkInSlice(one, slicing.slices, slice, op.source);
    }
    op.channel += slicing.in_turn ? 0 : slice * slicing.channels_each;
    for (OpIndex& earlier : op.after) {
      earlier = slicing.in_turn ? slice * size + earlier : earlier * slicing.slices + slice;
    }
  }
  return list;
}

std::vector<Op> ListOf(const Schedule& one, const Slicing& slicing, Rank rank) {
  std::vector<std::vector<Op>> lists;
  std::vector<Op> all;
  for (int slice = 0; slice < slicing.slices; ++slice) {
    lists.push_back(SliceOf(one, slicing, slice, rank));
    RANKLAB_CHECK(lists.back().size() == lists[0].size(), "slices of one length");
    if (slicing.in_turn) {
      all.insert(all.end(), lists.back().begin(), lists.back().end());
    }
  }
  for (std::size_t i = 0; !slicing.in_turn && i < lists[0].size(); ++i) {
    for (std::vector<Op>& list : lists) {
      all.push_back(std::move(list[i]));
    }
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
