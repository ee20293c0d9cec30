#include "sim/schedule_player.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "core/check.h"
#include "core/status.h"
#include "sim/op_graph.h"

namespace ranklab::sim {
namespace {

using collectives::IsReceive;
using collectives::OpKind;
using Id = OpGraph::Id;

class Player {
 public:
  Player(const collectives::Schedule& schedule, double size, const fabric::CostModel& model,
         OpGraph graph)
      : model_(model),
        graph_(std::move(graph)),
        chunk_size_(size / std::max(schedule.input_chunks, schedule.output_chunks)),
        states_(static_cast<std::size_t>(graph_.size())),
        ports_(static_cast<std::size_t>(schedule.group_size) *
               static_cast<std::size_t>(model.ports)) {
    RANKLAB_CHECK(model.ports >= 1 && size >= 0);
    played_.rank_ends.resize(static_cast<std::size_t>(schedule.group_size));
  }

  absl::StatusOr<Played> Play() && {
    for (Id id = 0; id < graph_.size(); ++id) {
      StateOf(id).causes = NodeOf(id).causes;
      if (NodeOf(id).causes == 0) {
        startable_.push_back(id);
      }
    }
    StartAll();
    UsePorts();
    while (!events_.empty()) {
      // Ports are given out once all that happens at this instant has.
      now_ = events_.top().when;
      while (!events_.empty() && events_.top().when == now_) {
        const Event event = events_.top();
        events_.pop();
        Happen(event);
        StartAll();
      }
      UsePorts();
    }
    if (finished_ < graph_.size()) {
      return FailedPrecondition("%d of %d ops wait for ever", graph_.size() - finished_,
                                graph_.size());
    }
    played_.ends = now_;
    return std::move(played_);
  }

 private:
  enum class Kind : std::uint8_t { kSent, kArrived, kReduced };
  struct Event {
    double when = 0;
    std::int64_t order = 0;  // of the call: ties
    Id id = 0;
    Kind kind = Kind::kSent;

    friend bool operator<(const Event& a, const Event& b) {  // a priority queue's top is the last
      return a.when != b.when ? a.when > b.when : a.order > b.order;
    }
  };
  struct State {
    std::int32_t causes = 0;
    bool started = false;
    bool arrived = false;  // a receive's message
    Id next_in_port = -1;  // a send's
  };
  // One of a rank: a queue of sends, what comes in, and an arithmetic unit.
  struct Port {
    Id first = -1;
    Id last = -1;
    bool sends = false;
    double receives_until = 0;
    double reduces_until = 0;
  };

  const OpGraph::Node& NodeOf(Id id) const { return graph_.nodes[static_cast<std::size_t>(id)]; }
  State& StateOf(Id id) { return states_[static_cast<std::size_t>(id)]; }
  Port& PortOf(Id id) {
    const OpGraph::Node& node = NodeOf(id);
    return ports_[static_cast<std::size_t>(node.rank) * static_cast<std::size_t>(model_.ports) +
                  static_cast<std::size_t>(node.channel % model_.ports)];
  }
  double SizeOf(Id id) const { return NodeOf(id).chunks * chunk_size_; }

  void At(double when, Kind kind, Id id) { events_.push({when, next_order_++, id, kind}); }

  // What one start or finish makes possible is appended while it runs.
  void StartAll() {
    for (std::size_t i = 0; i < startable_.size(); ++i) {
      Start(startable_[i]);
    }
    startable_.clear();
  }

  void RemoveCause(Id id) {
    if (--StateOf(id).causes == 0) {
      startable_.push_back(id);
    }
  }

  void Start(Id id) {
    const OpGraph::Node& node = NodeOf(id);
    StateOf(id).started = true;
    if (node.next_in_channel >= 0) {
      RemoveCause(node.next_in_channel);
    }
    switch (node.kind) {
      case OpKind::kSend:
        if (model_.eager || StateOf(node.other).started) {
          Queue(id);
        }
        break;
      case OpKind::kRecv:
      case OpKind::kRecvReduce:
        if (StateOf(id).arrived) {
          UseMessage(id);
        } else if (!model_.eager && StateOf(node.other).started) {
          Queue(node.other);
        }
        break;
      case OpKind::kCopy:
        Finish(id);
        break;
      case OpKind::kReduce:
        Reduce(id);
        break;
    }
  }

  void Queue(Id send) {
    ++played_.messages;
    queued_.push_back(send);
  }

  // Messages that became ready at one instant go in the order of ranks and lists.
  void UsePorts() {
    std::sort(queued_.begin(), queued_.end());
    for (const Id send : queued_) {
      Port& port = PortOf(send);
      (port.first < 0 ? port.first : StateOf(port.last).next_in_port) = send;
      port.last = send;
      freed_.push_back(&port);
    }
    queued_.clear();
    for (Port* port : freed_) {
      if (!port->sends) {
        SendNext(*port);
      }
    }
    freed_.clear();
  }

  void SendNext(Port& port) {
    const Id send = port.first;
    if (send < 0) {
      return;
    }
    port.sends = true;
    port.first = StateOf(send).next_in_port;
    const Id receive = NodeOf(send).other;
    Port& into = PortOf(receive);
    const double alpha = model_.Alpha(NodeOf(send).rank, NodeOf(receive).rank);
    const double transfer = SizeOf(send) * model_.Beta(NodeOf(send).rank, NodeOf(receive).rank);
    if (model_.alpha_holds_ports) {
      into.receives_until = std::max(now_, into.receives_until) + alpha + transfer;
      At(into.receives_until, Kind::kArrived, receive);
      At(into.receives_until, Kind::kSent, send);
    } else {
      into.receives_until = std::max(now_ + alpha, into.receives_until) + transfer;
      At(now_ + transfer, Kind::kSent, send);
      At(into.receives_until, Kind::kArrived, receive);
    }
  }

  void Happen(const Event& event) {
    switch (event.kind) {
      case Kind::kSent:
        PortOf(event.id).sends = false;
        freed_.push_back(&PortOf(event.id));
        Finish(event.id);
        break;
      case Kind::kArrived:
        StateOf(event.id).arrived = true;
        if (StateOf(event.id).started) {
          UseMessage(event.id);
        }
        break;
      case Kind::kReduced:
        Finish(event.id);
        break;
    }
  }

  void UseMessage(Id receive) {
    if (NodeOf(receive).kind == OpKind::kRecvReduce) {
      Reduce(receive);
    } else {
      Finish(receive);
    }
  }

  void Reduce(Id id) {
    Port& port = PortOf(id);
    port.reduces_until = std::max(now_, port.reduces_until) + SizeOf(id) * model_.gamma;
    At(port.reduces_until, Kind::kReduced, id);
  }

  void Finish(Id id) {
    ++finished_;
    double& ends = played_.rank_ends[static_cast<std::size_t>(NodeOf(id).rank)];
    ends = std::max(ends, now_);
    for (const Id follower : graph_.FollowersOf(id)) {
      RemoveCause(follower);
    }
  }

  const fabric::CostModel model_;
  const OpGraph graph_;
  const double chunk_size_;
  std::vector<State> states_;
  std::vector<Port> ports_;
  std::vector<Id> startable_;
  std::vector<Id> queued_;    // at this instant
  std::vector<Port*> freed_;  // ports that may send again
  std::priority_queue<Event> events_;
  std::int64_t next_order_ = 0;
  Id finished_ = 0;
  double now_ = 0;
  Played played_;
};

}  // namespace

absl::StatusOr<Played> PlaySchedule(const collectives::Schedule& schedule, double size,
                                    const fabric::CostModel& model) {
  ASSIGN_OR_RETURN(OpGraph graph, BuildOpGraph(schedule));
  return Player(schedule, size, model, std::move(graph)).Play();
}

}  // namespace ranklab::sim
