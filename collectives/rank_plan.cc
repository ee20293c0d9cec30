#include "collectives/rank_plan.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "collectives/schedule/conflicts.h"
#include "core/check.h"

namespace ranklab::collectives {
namespace {

void LinkMessagesAndChannels(RankPlan& plan) {
  std::map<std::tuple<Rank, std::int32_t, bool>, std::uint32_t> next;  // peer, channel, direction
  std::map<std::pair<Rank, std::int32_t>, OpIndex> last_reduction;     // peer, channel
  std::map<std::int32_t, OpIndex> last_in_channel;
  for (OpIndex i = 0; i < static_cast<OpIndex>(plan.ops.size()); ++i) {
    RankPlan::PlannedOp& planned = plan.ops[static_cast<std::size_t>(i)];
    const Op& op = planned.op;
    if (!IsLocal(op.kind)) {
      planned.part = next[{op.peer, op.channel, op.kind == OpKind::kSend}]++;
    }
    if (op.kind == OpKind::kRecvReduce) {
      plan.reductions.push_back(i);
      const auto [last, first] = last_reduction.try_emplace({op.peer, op.channel}, i);
      if (!first) {
        planned.previous_reduction = last->second;
        plan.ops[static_cast<std::size_t>(last->second)].next_reduction = i;
        last->second = i;
      }
    }
    const auto [last, first_of_channel] = last_in_channel.try_emplace(op.channel, i);
    if (!first_of_channel) {
      plan.ops[static_cast<std::size_t>(last->second)].next_in_channel = i;
      ++planned.start_causes;
      last->second = i;
    }
  }
}

// For each receive that overwrites: the earlier ops that use its chunks.
std::vector<std::vector<OpIndex>> LandingCauses(const Schedule& schedule,
                                                const std::vector<Op>& ops) {
  std::vector<std::vector<OpIndex>> causes(ops.size());
  ConflictScan scan(schedule.chunks());
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const auto& conflicts = scan.Next(static_cast<OpIndex>(i), ops[i]);
    if (ops[i].kind != OpKind::kRecv) {
      continue;
    }
    for (const auto& conflict : conflicts) {
      causes[i].push_back(conflict.earlier);
    }
    std::sort(causes[i].begin(), causes[i].end());
    causes[i].erase(std::unique(causes[i].begin(), causes[i].end()), causes[i].end());
  }
  return causes;
}

// Turns "i waits for these" into "these are followed by i".
void ListFollowers(RankPlan& plan, const std::vector<std::vector<OpIndex>>& causes,
                   RankPlan::Range RankPlan::PlannedOp::*range) {
  std::vector<std::vector<OpIndex>> followers(plan.ops.size());
  for (std::size_t i = 0; i < causes.size(); ++i) {
    for (const OpIndex cause : causes[i]) {
      RANKLAB_CHECK(cause >= 0 && cause < static_cast<OpIndex>(i));
      followers[static_cast<std::size_t>(cause)].push_back(static_cast<OpIndex>(i));
    }
  }
  for (std::size_t i = 0; i < followers.size(); ++i) {
    const auto begin = static_cast<std::int32_t>(plan.followers.size());
    plan.followers.insert(plan.followers.end(), followers[i].begin(), followers[i].end());
    plan.ops[i].*range = {begin, static_cast<std::int32_t>(plan.followers.size())};
  }
}

}  // namespace

RankPlan MakeRankPlan(const Schedule& schedule, Rank rank) {
  RANKLAB_CHECK(0 <= rank && rank < schedule.group_size, "rank %d of %d", rank,
                schedule.group_size);
  RankPlan plan;
  plan.algorithm = schedule.name;
  plan.collective = schedule.collective;
  plan.group_size = schedule.group_size;
  plan.rank = rank;
  plan.input_chunks = schedule.input_chunks;
  plan.output_chunks = schedule.output_chunks;
  plan.scratch_chunks = schedule.scratch_chunks;
  plan.needs_equal_chunks = schedule.needs_equal_chunks();
  for (std::int32_t i = 0; !plan.needs_equal_chunks && i < schedule.scratch_chunks; ++i) {
    plan.scratch_like.push_back(schedule.scratch_like(rank, i));
  }

  std::vector<Op> ops = schedule.ops_of(rank);
  const std::vector<std::vector<OpIndex>> landing_causes = LandingCauses(schedule, ops);
  std::vector<std::vector<OpIndex>> start_causes(ops.size());
  for (std::size_t i = 0; i < ops.size(); ++i) {
    start_causes[i] = std::exchange(ops[i].after, {});
    RankPlan::PlannedOp& planned = plan.ops.emplace_back();
    planned.op = std::move(ops[i]);
    planned.start_causes = static_cast<std::int32_t>(start_causes[i].size());
    planned.landing_causes = static_cast<std::int32_t>(landing_causes[i].size());
  }
  LinkMessagesAndChannels(plan);
  ListFollowers(plan, start_causes, &RankPlan::PlannedOp::starts);
  ListFollowers(plan, landing_causes, &RankPlan::PlannedOp::frees);
  return plan;
}

}  // namespace ranklab::collectives
