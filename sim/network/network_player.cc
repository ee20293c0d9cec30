#include "sim/network/network_player.h"

#include <algorithm>
#include <utility>

#include "core/status.h"
#include "sim/rank_programs.h"

namespace ranklab::sim {
namespace {

using collectives::OpKind;

class NetworkPlayer {
 public:
  NetworkPlayer(const RankPrograms& programs, int ranks, double chunk_size, NetworkModel& network,
                std::uint64_t seed)
      : programs_(programs), chunk_size_(chunk_size), network_(network), seed_(seed) {
    for (Rank rank = 0; rank < ranks; ++rank) {
      first_state_.push_back(states_.size());
      for (std::int32_t op = 0; op < programs.CountOf(rank); ++op) {
        states_.push_back({.causes = NodeOf({rank, op}).causes});
      }
    }
    played_.rank_ends.resize(static_cast<std::size_t>(ranks));
  }

  absl::StatusOr<PlayedOnNetwork> Play() && {
    for (Rank rank = 0; rank < static_cast<Rank>(first_state_.size()); ++rank) {
      for (std::int32_t op = 0; op < programs_.CountOf(rank); ++op) {
        if (NodeOf({rank, op}).causes == 0) {
          startable_.push_back({rank, op});
        }
      }
    }
    StartAll();
    std::vector<NetworkModel::Message> arrived;
    while (const auto next = network_.NextInstant()) {
      now_ = *next;
      arrived.clear();
      network_.AdvanceTo(now_, arrived);
      for (const NetworkModel::Message message : arrived) {
        Arrive(std::exchange(sends_[static_cast<std::size_t>(message)], {}));
        StartAll();
      }
    }
    if (finished_ < states_.size()) {
      return FailedPrecondition("%d of %d ops wait for ever", states_.size() - finished_,
                                states_.size());
    }
    played_.ends = now_;
    played_.link_bytes = network_.bytes_of_links();
    return std::move(played_);
  }

 private:
  struct OpOf {
    Rank rank = 0;
    OpIndex op = 0;
  };
  struct State {
    std::int32_t causes = 0;
    bool started = false;
    bool arrived = false;  // a receive's message
  };

  const ProgramOp& NodeOf(OpOf id) const {
    return programs_.ops()[static_cast<std::size_t>(programs_.FirstOf(id.rank) + id.op)];
  }
  State& StateOf(OpOf id) {
    return states_[first_state_[static_cast<std::size_t>(id.rank)] +
                   static_cast<std::size_t>(id.op)];
  }

  void StartAll() {
    for (std::size_t i = 0; i < startable_.size(); ++i) {
      Start(startable_[i]);
    }
    startable_.clear();
  }

  void RemoveCause(OpOf id) {
    if (--StateOf(id).causes == 0) {
      startable_.push_back(id);
    }
  }

  void Start(OpOf id) {
    const ProgramOp& node = NodeOf(id);
    StateOf(id).started = true;
    if (node.next_in_channel >= 0) {
      RemoveCause({id.rank, node.next_in_channel});
    }
    if (node.kind == OpKind::kSend) {
      sends_.push_back(id);
      network_.Begin(played_.messages++, id.rank, programs_.PeerOf(id.rank, node),
                     node.chunks * chunk_size_, seed_ + static_cast<std::uint64_t>(node.channel),
                     now_);
    } else if (collectives::IsLocal(node.kind) || StateOf(id).arrived) {
      Finish(id);
    }
  }

  void Arrive(OpOf send) {
    const ProgramOp& node = NodeOf(send);
    const OpOf receive = {programs_.PeerOf(send.rank, node), node.other};
    Finish(send);
    StateOf(receive).arrived = true;
    if (StateOf(receive).started) {
      Finish(receive);
    }
  }

  void Finish(OpOf id) {
    ++finished_;
    played_.rank_ends[static_cast<std::size_t>(id.rank)] = now_;
    const auto index = static_cast<std::size_t>(programs_.FirstOf(id.rank) + id.op);
    for (const OpIndex follower : programs_.FollowersOf(index)) {
      RemoveCause({id.rank, follower});
    }
  }

  const RankPrograms& programs_;
  const double chunk_size_;
  NetworkModel& network_;
  const std::uint64_t seed_;
  std::vector<std::size_t> first_state_;  // [rank]
  std::vector<State> states_;
  std::vector<OpOf> startable_;
  std::vector<OpOf> sends_;  // [message]
  std::size_t finished_ = 0;
  double now_ = 0;
  PlayedOnNetwork played_;
};

}  // namespace

absl::StatusOr<PlayedOnNetwork> PlayOnNetwork(const collectives::Schedule& schedule, double size,
                                              const fabric::GraphTopology& topology,
                                              NetworkModel& network, std::uint64_t seed) {
  if (topology.world_size() < schedule.group_size) {
    return InvalidArgument("%s has %d ranks, the group %d", topology.name(), topology.world_size(),
                           schedule.group_size);
  }
  ASSIGN_OR_RETURN(const RankPrograms programs, RankPrograms::Of(schedule));
  const double chunk_size = size / std::max(schedule.input_chunks, schedule.output_chunks);
  return NetworkPlayer(programs, schedule.group_size, chunk_size, network, seed).Play();
}

}  // namespace ranklab::sim
