#include "sim/op_graph.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "core/check.h"
#include "core/status.h"

namespace ranklab::sim {
namespace {

using collectives::Op;
using collectives::OpIndex;
using collectives::OpKind;
using Id = OpGraph::Id;

OpGraph::Node& At(OpGraph& graph, Id id) { return graph.nodes[static_cast<std::size_t>(id)]; }

struct Edge {
  Id from = 0;
  Id to = 0;
};

// One end of a message, sortable: the k-th of a stream stands k-th among its equals.
struct End {
  Rank from = 0;
  Rank to = 0;
  std::int32_t channel = 0;
  Id id = 0;

  auto stream() const { return std::tuple(from, to, channel); }
  friend bool operator<(const End& a, const End& b) {
    return std::tuple(a.from, a.to, a.channel, a.id) < std::tuple(b.from, b.to, b.channel, b.id);
  }
};

class GraphBuilder {
 public:
  absl::StatusOr<OpGraph> Build(const collectives::Schedule& schedule) && {
    for (Rank rank = 0; rank < schedule.group_size; ++rank) {
      AddRank(rank, schedule.ops_of(rank));
    }
    graph_.nodes.emplace_back();
    RETURN_IF_ERROR(Pair());
    ListFollowers();
    return std::move(graph_);
  }

 private:
  void AddRank(Rank rank, const std::vector<Op>& ops) {
    const auto first = static_cast<Id>(graph_.nodes.size());
    RANKLAB_CHECK(graph_.nodes.size() + ops.size() <
                  static_cast<std::size_t>(std::numeric_limits<Id>::max()));
    last_in_channel_.clear();
    for (OpIndex i = 0; i < static_cast<OpIndex>(ops.size()); ++i) {
      const Op& op = ops[static_cast<std::size_t>(i)];
      const Id id = first + i;
      graph_.nodes.push_back({.kind = op.kind,
                              .rank = rank,
                              .channel = op.channel,
                              .chunks = op.count,
                              .causes = static_cast<std::int32_t>(op.after.size())});
      for (const OpIndex earlier : op.after) {
        edges_.push_back({first + earlier, id});
      }
      FollowInChannel(op.channel, id);
      if (op.kind == OpKind::kSend) {
        sends_.push_back({rank, op.peer, op.channel, id});
      } else if (collectives::IsReceive(op.kind)) {
        receives_.push_back({op.peer, rank, op.channel, id});
      }
    }
  }

  void FollowInChannel(std::int32_t channel, Id id) {
    if (static_cast<std::size_t>(channel) >= last_in_channel_.size()) {
      last_in_channel_.resize(static_cast<std::size_t>(channel) + 1, -1);
    }
    const Id last = std::exchange(last_in_channel_[static_cast<std::size_t>(channel)], id);
    if (last >= 0) {
      At(graph_, last).next_in_channel = id;
      ++At(graph_, id).causes;
    }
  }

  absl::Status Pair() {
    std::sort(sends_.begin(), sends_.end());
    std::sort(receives_.begin(), receives_.end());
    for (std::size_t i = 0; i < std::max(sends_.size(), receives_.size()); ++i) {
      if (i >= sends_.size() || i >= receives_.size() ||
          sends_[i].stream() != receives_[i].stream()) {
        const End& odd = i < sends_.size() ? sends_[i] : receives_[i];
        return FailedPrecondition(
            "from rank %d to rank %d in channel %d, sends and receives do not pair up", odd.from,
            odd.to, odd.channel);
      }
      At(graph_, sends_[i].id).other = receives_[i].id;
      At(graph_, receives_[i].id).other = sends_[i].id;
    }
    return absl::OkStatus();
  }

  // Counting sort of the edges by where they come from.
  void ListFollowers() {
    std::vector<std::int32_t> next(graph_.nodes.size() + 1);
    for (const Edge& edge : edges_) {
      ++next[static_cast<std::size_t>(edge.from) + 1];
    }
    for (std::size_t i = 1; i < next.size(); ++i) {
      next[i] += next[i - 1];
    }
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      graph_.nodes[i].followers_begin = next[i];
    }
    graph_.followers.resize(edges_.size());
    for (const Edge& edge : edges_) {
      const std::int32_t slot = next[static_cast<std::size_t>(edge.from)]++;
      graph_.followers[static_cast<std::size_t>(slot)] = edge.to;
    }
  }

  OpGraph graph_;
  std::vector<Edge> edges_;
  std::vector<End> sends_;
  std::vector<End> receives_;
  std::vector<Id> last_in_channel_;  // of the rank being added
};

}  // namespace

absl::StatusOr<OpGraph> BuildOpGraph(const collectives::Schedule& schedule) {
  return GraphBuilder().Build(schedule);
}

}  // namespace ranklab::sim
