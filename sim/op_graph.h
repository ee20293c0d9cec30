// All ops of a schedule in flat arrays: who follows whom, and which send meets which receive.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <absl/status/statusor.h>

#include "collectives/schedule/schedule.h"

namespace ranklab::sim {

struct OpGraph {
  using Id = std::int32_t;

  struct Node {
    collectives::OpKind kind = collectives::OpKind::kSend;
    Rank rank = 0;
    std::int32_t channel = 0;
    std::int32_t chunks = 0;
    Id other = -1;            // the other end of a message
    Id next_in_channel = -1;  // may start once this one has
    std::int32_t causes = 0;  // starts and finishes it waits for
    std::int32_t followers_begin = 0;
  };

  std::vector<Node> nodes;    // rank by rank, in list order; one more at the end
  std::vector<Id> followers;  // by node: those that wait for its finish

  Id size() const { return static_cast<Id>(nodes.size()) - 1; }
  std::span<const Id> FollowersOf(Id id) const {
    const auto begin =
        static_cast<std::size_t>(nodes[static_cast<std::size_t>(id)].followers_begin);
    const auto end =
        static_cast<std::size_t>(nodes[static_cast<std::size_t>(id) + 1].followers_begin);
    return std::span(followers).subspan(begin, end - begin);
  }
};

// Errors: FailedPrecondition, a message without its other end.
absl::StatusOr<OpGraph> BuildOpGraph(const collectives::Schedule& schedule);

}  // namespace ranklab::sim
