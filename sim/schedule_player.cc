#include "sim/schedule_player.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "core/status.h"
#include "sim/actors.h"
#include "sim/instant_queue.h"
#include "sim/rank_classes.h"
#include "sim/rank_programs.h"

namespace ranklab::sim {
namespace {

using collectives::IsReceive;
using collectives::OpKind;

class Player {
 public:
  Player(const collectives::Schedule& schedule, double size, const fabric::CostModel& model,
         const Disturbances& disturbances, const RankPrograms& programs, const RankClasses& classes)
      : model_(model),
        classes_(classes),
        chunk_size_(size / std::max(schedule.input_chunks, schedule.output_chunks)),
        actors_(programs, classes, disturbances),
        ports_(static_cast<std::size_t>(actors_.count()) * static_cast<std::size_t>(model.ports)) {
    RANKLAB_CHECK(model.ports >= 1 && size >= 0);
    for (const SlowLink& slow : disturbances.links) {
      links_.push_back({slow});
    }
  }

  absl::StatusOr<Played> Play() && {
    for (Actor actor = 0; actor < actors_.count(); ++actor) {
      events_.Add(actors_.at(actor).late, {.actor = actor, .kind = Kind::kEnters});
    }
    std::vector<Event> happening;
    while (!events_.empty()) {
      // Ports are given out once all that happens at this instant has.
      now_ = events_.next();
      events_.Take(happening);
      for (const Event& event : happening) {
        Happen(event);
        StartAll();
      }
      Receive();
      UsePorts();
    }
    if (finished_ < static_cast<std::int64_t>(actors_.ops())) {
      return FailedPrecondition("%d of %d ops wait for ever",
                                static_cast<std::int64_t>(actors_.ops()) - finished_,
                                actors_.ops());
    }
    played_.ends = now_;
    FillIn();
    return std::move(played_);
  }

 private:
  enum class Kind : std::uint8_t {
    kEnters,
    kSent,  // kPortFree and kLeft at once
    kPortFree,
    kLeft,
    kReaches,
    kArrived,
    kReduced,
  };
  struct Event {
    Actor actor = 0;
    OpIndex op = 0;
    Kind kind = Kind::kSent;
    double floor = 0;  // kReaches: what the sender's side allows it to arrive at
  };
  struct Reached {
    OpOf receive;
    double floor = 0;
    friend bool operator<(const Reached& a, const Reached& b) { return a.receive < b.receive; }
  };
  struct PortName {
    Actor actor = 0;
    std::int32_t channel = 0;
  };
  // One of a rank: a queue of sends, what comes in, and an arithmetic unit.
  struct Port {
    OpIndex first = -1;
    OpIndex last = -1;
    bool sends = false;
    double receives_until = 0;
    double reduces_until = 0;
  };
  struct LinkState {
    SlowLink slow;
    double busy_until = 0;
  };

  Port& PortOf(Actor actor, std::int32_t channel) {
    const auto ports = static_cast<std::size_t>(model_.ports);
    return ports_[static_cast<std::size_t>(actor) * ports +
                  (ports == 1 ? 0 : static_cast<std::size_t>(channel) % ports)];
  }
  double SizeOf(const ProgramOp& node) const { return node.chunks * chunk_size_; }

  void At(double when, Kind kind, OpOf id) { events_.Add(when, {id.actor, id.op, kind}); }

  void Enter(Actor actor) {
    const std::int32_t count = actors_.CountOf(actor);
    for (OpIndex op = 0; op < count; ++op) {
      if (actors_.NodeOf({actor, op}).causes == 0) {
        startable_.push_back({actor, op});
      }
    }
  }

  // What one start or finish makes possible is appended while it runs.
  void StartAll() {
    for (std::size_t i = 0; i < startable_.size(); ++i) {
      Start(startable_[i]);
    }
    startable_.clear();
  }

  void RemoveCause(OpOf id) {
    if (--actors_.at(id).causes == 0) {
      startable_.push_back(id);
    }
  }

  void Start(OpOf id) {
    const ProgramOp& node = actors_.NodeOf(id);
    actors_.at(id).started = 1;
    if (node.next_in_channel >= 0) {
      RemoveCause({id.actor, node.next_in_channel});
    }
    switch (node.kind) {
      case OpKind::kSend:
        if (model_.eager || actors_.at(actors_.OtherEnd(id.actor, node)).started != 0) {
          queued_.push_back(id);
        }
        break;
      case OpKind::kRecv:
      case OpKind::kRecvReduce:
        if (actors_.at(id).arrived != 0) {
          UseMessage(id);
        } else if (!model_.eager && actors_.at(actors_.OtherEnd(id.actor, node)).started != 0) {
          queued_.push_back(actors_.OtherEnd(id.actor, node));
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

  // Messages that became ready at one instant go in the order of lists.
  void UsePorts() {
    if (!std::is_sorted(queued_.begin(), queued_.end())) {
      std::sort(queued_.begin(), queued_.end());
    }
    for (const OpOf send : queued_) {
      const std::int32_t channel = actors_.NodeOf(send).channel;
      Port& port = PortOf(send.actor, channel);
      (port.first < 0 ? port.first : actors_.at(OpOf{send.actor, port.last}).next_in_port) =
          send.op;
      port.last = send.op;
      freed_.push_back({send.actor, channel});
    }
    queued_.clear();
    for (const PortName& name : freed_) {
      Port& port = PortOf(name.actor, name.channel);
      if (!port.sends && port.first >= 0) {
        SendNext(name.actor, port);
      }
    }
    freed_.clear();
    if (model_.alpha_holds_ports) {
      Receive();
    }
  }

  void SendNext(Actor actor, Port& port) {
    const OpOf send = {actor, port.first};
    const ProgramOp& node = actors_.NodeOf(send);
    port.sends = true;
    port.first = actors_.at(send).next_in_port;
    played_.messages += actors_.members(actor);
    ++played_.messages_played;
    const Rank from = actors_.at(actor).rank;
    const Rank to = actors_.PeerOf(actor, node);
    const OpOf receive = {actors_.ActorOf(to), node.other};
    if (model_.alpha_holds_ports) {
      reached_.push_back({receive});
      return;
    }
    const double port_free = now_ + SendTransfer(actor, node, to);
    double begins = now_;
    double leaves = port_free;
    LinkState* const link = SlowLinkOf(from, to);
    if (link == nullptr) {
      At(leaves, Kind::kSent, send);
    } else {
      begins = std::max(now_, link->busy_until);
      link->busy_until = begins + SizeOf(node) * model_.Beta(from, to) * link->slow.factor;
      leaves = std::max(port_free, link->busy_until);
      At(port_free, Kind::kPortFree, send);
      At(leaves, Kind::kLeft, send);
    }
    const double latency = Latency(from, to, link);
    events_.Add(begins + latency, {.actor = receive.actor,
                                   .op = receive.op,
                                   .kind = Kind::kReaches,
                                   .floor = leaves + latency});
  }

  // Messages that reach a port at one instant go in the order of the receiver's list.
  void Receive() {
    if (!std::is_sorted(reached_.begin(), reached_.end())) {
      std::sort(reached_.begin(), reached_.end());
    }
    for (const Reached& reached : reached_) {
      if (model_.alpha_holds_ports) {
        HoldBothPorts(reached.receive);
      } else {
        const ProgramOp& node = actors_.NodeOf(reached.receive);
        const ActorState& actor = actors_.at(reached.receive.actor);
        Port& into = PortOf(reached.receive.actor, node.channel);
        const double beta = model_.Beta(actors_.PeerOf(reached.receive.actor, node), actor.rank);
        into.receives_until =
            std::max(now_, into.receives_until) + SizeOf(node) * beta * actor.port_factor;
        At(std::max(into.receives_until, reached.floor), Kind::kArrived, reached.receive);
      }
    }
    reached_.clear();
  }

  void HoldBothPorts(OpOf receive) {
    const ProgramOp& node = actors_.NodeOf(receive);
    const ActorState& receiver = actors_.at(receive.actor);
    const Rank from = actors_.PeerOf(receive.actor, node);
    const OpOf send = {actors_.ActorOf(from), node.other};
    const LinkState* const link = SlowLinkOf(from, receiver.rank);
    const double factor = std::max({receiver.port_factor, actors_.at(send.actor).port_factor,
                                    link == nullptr ? 1.0 : link->slow.factor});
    const double transfer = SizeOf(node) * model_.Beta(from, receiver.rank) * factor;
    Port& into = PortOf(receive.actor, node.channel);
    into.receives_until =
        std::max(now_, into.receives_until) + Latency(from, receiver.rank, link) + transfer;
    At(into.receives_until, Kind::kArrived, receive);
    At(into.receives_until, Kind::kSent, send);
  }

  double SendTransfer(Actor actor, const ProgramOp& node, Rank to) {
    const ActorState& from = actors_.at(actor);
    return SizeOf(node) * model_.Beta(from.rank, to) * from.port_factor;
  }
  double Latency(Rank from, Rank to, const LinkState* link) const {
    return model_.Alpha(from, to) + (link == nullptr ? 0 : link->slow.latency);
  }
  LinkState* SlowLinkOf(Rank from, Rank to) {
    for (LinkState& link : links_) {
      if (link.slow.from == from && link.slow.to == to) {
        return &link;
      }
    }
    return nullptr;
  }

  void Happen(const Event& event) {
    const OpOf id = {event.actor, event.op};
    switch (event.kind) {
      case Kind::kEnters:
        Enter(event.actor);
        break;
      case Kind::kSent:
        FreePort(id);
        Finish(id);
        break;
      case Kind::kPortFree:
        FreePort(id);
        break;
      case Kind::kLeft:
        Finish(id);
        break;
      case Kind::kReaches:
        reached_.push_back({id, event.floor});
        break;
      case Kind::kArrived:
        actors_.at(id).arrived = 1;
        if (actors_.at(id).started != 0) {
          UseMessage(id);
        }
        break;
      case Kind::kReduced:
        Finish(id);
        break;
    }
  }

  void FreePort(OpOf send) {
    const std::int32_t channel = actors_.NodeOf(send).channel;
    PortOf(send.actor, channel).sends = false;
    freed_.push_back({send.actor, channel});
  }

  void UseMessage(OpOf receive) {
    if (actors_.NodeOf(receive).kind == OpKind::kRecvReduce && model_.gamma > 0) {
      Reduce(receive);
    } else {
      Finish(receive);
    }
  }

  void Reduce(OpOf id) {
    const ProgramOp& node = actors_.NodeOf(id);
    Port& port = PortOf(id.actor, node.channel);
    port.reduces_until = std::max(now_, port.reduces_until) + SizeOf(node) * model_.gamma;
    At(port.reduces_until, Kind::kReduced, id);
  }

  void Finish(OpOf id) {
    ++finished_;
    ActorState& actor = actors_.at(id.actor);
    actor.ends = now_;
    for (const OpIndex follower : actors_.FollowersOf(id)) {
      RemoveCause({id.actor, follower});
    }
  }

  void FillIn() {
    played_.ranks_played = actors_.count();
    played_.rank_ends.reserve(classes_.class_of.size());
    for (const Actor actor : classes_.class_of) {
      played_.rank_ends.push_back(actors_.at(actor).ends);
    }
  }

  const fabric::CostModel model_;
  const RankClasses& classes_;
  const double chunk_size_;
  Actors actors_;
  std::vector<Port> ports_;  // [actor][port]
  std::vector<LinkState> links_;
  std::vector<OpOf> startable_;
  std::vector<OpOf> queued_;      // sends that became ready at this instant
  std::vector<PortName> freed_;   // ports that may send again
  std::vector<Reached> reached_;  // receives whose message came to the port at this instant
  InstantQueue<Event> events_;
  std::int64_t finished_ = 0;
  double now_ = 0;
  Played played_;
};

// Instants are counted in nanoseconds, so that whole ones add up exactly and what happens at the
// same time is seen to.
constexpr double kNanoseconds = 1e9;

fabric::CostModel InNanoseconds(fabric::CostModel model) {
  for (double* const time :
       {&model.alpha, &model.beta, &model.gamma, &model.alpha_between, &model.beta_between}) {
    *time *= kNanoseconds;
  }
  return model;
}

Disturbances InNanoseconds(Disturbances disturbances) {
  for (SlowRank& slow : disturbances.ranks) {
    slow.late *= kNanoseconds;
  }
  for (SlowLink& slow : disturbances.links) {
    slow.latency *= kNanoseconds;
  }
  return disturbances;
}

std::int64_t OpsOf(const RankPrograms& programs, const RankClasses& classes) {
  std::int64_t ops = 0;
  for (const Rank rank : classes.representative) {
    ops += programs.CountOf(rank);
  }
  return ops;
}

}  // namespace

absl::StatusOr<Played> PlaySchedule(const collectives::Schedule& schedule, double size,
                                    const fabric::CostModel& model, const PlayOptions& options) {
  const int ranks = schedule.group_size;
  RETURN_IF_ERROR(CheckDisturbances(options.disturbances, ranks));
  ASSIGN_OR_RETURN(const RankPrograms programs, RankPrograms::Of(schedule));
  const RankClasses classes =
      options.fold ? FindRanksAlike(programs, ranks, model, options.disturbances, options.most_ops)
                   : NobodyAlike(ranks);
  if (const std::int64_t ops = OpsOf(programs, classes); ops > options.most_ops) {
    return ResourceExhausted("%d ops to be played, at most %d may be%s%s", ops, options.most_ops,
                             classes.gave_up.empty() ? "" : "; not folded: ", classes.gave_up);
  }
  auto played = Player(schedule, size, InNanoseconds(model), InNanoseconds(options.disturbances),
                       programs, classes)
                    .Play();
  if (!played.ok()) {
    return played;
  }
  played->ends /= kNanoseconds;
  for (double& ends : played->rank_ends) {
    ends /= kNanoseconds;
  }
  played->not_folded = classes.gave_up;
  return played;
}

}  // namespace ranklab::sim
