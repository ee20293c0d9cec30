// One rank's part of a schedule, prepared for running it many times: messages numbered, causes
// counted, followers listed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collectives/schedule/schedule.h"

namespace ranklab::collectives {

struct RankPlan {
  struct Range {
    std::int32_t begin = 0;
    std::int32_t end = 0;
  };
  struct PlannedOp {
    Op op;                   // `after` is empty: it became causes
    std::uint32_t part = 0;  // of its message among those of (sender, receiver, channel)
    std::int32_t start_causes =
        0;  // ops it waits for, and the start of the one before in its channel
    OpIndex next_in_channel = -1;
    // kRecvReduce: its neighbours among those from the same peer in the same channel.
    OpIndex previous_reduction = -1;
    OpIndex next_reduction = -1;
    // kRecv: earlier ops that use its chunks. Once they have finished, the message may land, even
    // though the op has not started: in a verified schedule no other op can touch the chunks before
    // it does.
    std::int32_t landing_causes = 0;
    Range starts;  // of `followers`: ops for which this one's finish is a start cause
    Range frees;   // of `followers`: receives for which it is a landing cause
  };

  std::string algorithm;
  Collective collective = Collective::kAllReduce;
  int group_size = 0;
  Rank rank = 0;
  std::int32_t input_chunks = 0;
  std::int32_t output_chunks = 0;
  std::int32_t scratch_chunks = 0;
  bool needs_equal_chunks = false;
  std::vector<std::int32_t> scratch_like;  // input chunks; empty when all chunks are equal
  std::vector<PlannedOp> ops;
  std::vector<OpIndex> followers;
  std::vector<OpIndex> reductions;  // the kRecvReduce ops, in list order

  const PlannedOp& at(OpIndex op) const { return ops[static_cast<std::size_t>(op)]; }
  std::span<const OpIndex> Followers(Range range) const {
    return std::span(followers).subspan(static_cast<std::size_t>(range.begin),
                                        static_cast<std::size_t>(range.end - range.begin));
  }
};

// Requires: 0 <= rank < schedule.group_size; Verify(schedule) is, or would be, Ok.
RankPlan MakeRankPlan(const Schedule& schedule, Rank rank);

}  // namespace ranklab::collectives
