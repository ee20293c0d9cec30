#include "sim/goal/loggops.h"

#include <algorithm>
#include <deque>
#include <queue>
#include <tuple>

#include "core/status.h"

namespace ranklab::sim {
namespace {

using Kind = GoalOp::Kind;

class GoalPlayer {
 public:
  GoalPlayer(const GoalProgram& program, const LogGops& parameters)
      : program_(program), parameters_(parameters), hosts_(program.ranks.size()) {
    for (std::size_t rank = 0; rank < hosts_.size(); ++rank) {
      Prepare(rank);
    }
  }

  absl::StatusOr<std::vector<std::int64_t>> Play() && {
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.when;
      event.arrival ? Arrive(event) : Run(event.host, event.op);
    }
    std::vector<std::int64_t> ends;
    for (std::size_t rank = 0; rank < hosts_.size(); ++rank) {
      RETURN_IF_ERROR(CheckDone(rank));
      ends.push_back(hosts_[rank].ends);
    }
    return ends;
  }

 private:
  struct OpState {
    std::int32_t causes = 0;
    std::int64_t ready = 0;  // not before
    bool started = false;
    std::vector<std::int32_t> after_end;    // ops that wait for its end
    std::vector<std::int32_t> after_start;  // for its start
  };
  struct Message {
    std::size_t from = 0;
    std::int32_t tag = 0;
    std::int64_t size = 0;
    std::int64_t arrives = 0;
  };
  struct Units {
    std::int64_t cpu_free = 0;
    std::int64_t sends_free = 0;
    std::int64_t receives_free = 0;
  };
  struct Host {
    std::vector<OpState> ops;
    std::vector<Units> units;         // as many as its ops name
    std::deque<std::int32_t> posted;  // receives without a message, in posting order
    std::deque<Message> unexpected;   // messages without a receive, in order of arrival
    std::int64_t ends = 0;
    std::size_t finished = 0;
  };
  struct Event {
    std::int64_t when = 0;
    std::int64_t order = 0;
    std::size_t host = 0;
    std::int32_t op = 0;
    bool arrival = false;
    Message message{};

    friend bool operator<(const Event& a, const Event& b) {  // the top of a queue is the last
      return std::tuple(a.when, a.order) > std::tuple(b.when, b.order);
    }
  };

  const GoalOp& OpOf(std::size_t host, std::int32_t op) const {
    return program_.ranks[host][static_cast<std::size_t>(op)];
  }
  OpState& StateOf(std::size_t host, std::int32_t op) {
    return hosts_[host].ops[static_cast<std::size_t>(op)];
  }
  Units& UnitOf(std::size_t host, std::int32_t unit) {
    return hosts_[host].units[static_cast<std::size_t>(unit)];
  }

  void Prepare(std::size_t rank) {
    const std::vector<GoalOp>& ops = program_.ranks[rank];
    hosts_[rank].ops.resize(ops.size());
    std::int32_t units = 0;
    for (const GoalOp& op : ops) {
      units = std::max({units, op.cpu + 1, op.nic + 1});
    }
    hosts_[rank].units.resize(static_cast<std::size_t>(units));
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const auto op = static_cast<std::int32_t>(i);
      StateOf(rank, op).causes =
          static_cast<std::int32_t>(ops[i].after.size() + ops[i].after_start.size());
      for (const std::int32_t earlier : ops[i].after) {
        StateOf(rank, earlier).after_end.push_back(op);
      }
      for (const std::int32_t earlier : ops[i].after_start) {
        StateOf(rank, earlier).after_start.push_back(op);
      }
    }
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (hosts_[rank].ops[i].causes == 0) {
        RunAt(0, rank, static_cast<std::int32_t>(i));
      }
    }
  }

  void RunAt(std::int64_t when, std::size_t host, std::int32_t op) {
    events_.push({.when = when, .order = next_order_++, .host = host, .op = op});
  }

  // Its turn has come; it may have to wait for CPU and NIC once more.
  void Run(std::size_t host, std::int32_t op) {
    const GoalOp& what = OpOf(host, op);
    if (what.kind == Kind::kRecv) {
      Start(host, op);
      Post(host, op);
      return;
    }
    Units& cpu = UnitOf(host, what.cpu);
    Units& nic = UnitOf(host, what.nic);
    const std::int64_t free =
        what.kind == Kind::kSend ? std::max(cpu.cpu_free, nic.sends_free) : cpu.cpu_free;
    if (free > now_) {
      RunAt(free, host, op);
      return;
    }
    Start(host, op);
    if (what.kind == Kind::kCalc) {
      cpu.cpu_free = now_ + what.size;
    } else {
      cpu.cpu_free = now_ + CpuTime(what.size);
      nic.sends_free = now_ + parameters_.gap + Wire(what.size);
      Send(host, what);
    }
    Finish(host, op, cpu.cpu_free);
  }

  std::int64_t Wire(std::int64_t size) const {
    return std::max<std::int64_t>(size - 1, 0) * parameters_.gap_per_byte;
  }
  std::int64_t CpuTime(std::int64_t size) const {
    return parameters_.overhead +
           std::max<std::int64_t>(size - 1, 0) * parameters_.overhead_per_byte;
  }

  void Send(std::size_t host, const GoalOp& op) {
    const std::int64_t arrives = now_ + parameters_.overhead + parameters_.latency + Wire(op.size);
    events_.push({.when = arrives,
                  .order = next_order_++,
                  .host = static_cast<std::size_t>(op.peer),
                  .arrival = true,
                  .message = {host, op.tag, op.size, arrives}});
  }

  static bool Fits(const GoalOp& receive, const Message& message) {
    return (receive.peer < 0 || static_cast<std::size_t>(receive.peer) == message.from) &&
           (receive.tag < 0 || receive.tag == message.tag);
  }

  void Arrive(const Event& event) {
    Host& host = hosts_[event.host];
    const auto fits = [&](std::int32_t op) { return Fits(OpOf(event.host, op), event.message); };
    const auto posted = std::find_if(host.posted.begin(), host.posted.end(), fits);
    if (posted == host.posted.end()) {
      host.unexpected.push_back(event.message);
      return;
    }
    const std::int32_t op = *posted;
    host.posted.erase(posted);
    Receive(event.host, op, event.message);
  }

  void Post(std::size_t host, std::int32_t op) {
    std::deque<Message>& waiting = hosts_[host].unexpected;
    const auto message = std::find_if(waiting.begin(), waiting.end(),
                                      [&](const Message& m) { return Fits(OpOf(host, op), m); });
    if (message == waiting.end()) {
      hosts_[host].posted.push_back(op);
      return;
    }
    const Message taken = *message;
    waiting.erase(message);
    Receive(host, op, taken);
  }

  void Receive(std::size_t host, std::int32_t op, const Message& message) {
    Units& cpu = UnitOf(host, OpOf(host, op).cpu);
    Units& nic = UnitOf(host, OpOf(host, op).nic);
    const std::int64_t begins = std::max({now_, message.arrives, cpu.cpu_free, nic.receives_free});
    cpu.cpu_free = begins + CpuTime(message.size);
    nic.receives_free = begins + parameters_.gap + Wire(message.size);
    Finish(host, op, cpu.cpu_free);
  }

  void Start(std::size_t host, std::int32_t op) {
    StateOf(host, op).started = true;
    for (const std::int32_t later : StateOf(host, op).after_start) {
      RemoveCause(host, later, now_);
    }
  }

  void Finish(std::size_t host, std::int32_t op, std::int64_t when) {
    hosts_[host].ends = std::max(hosts_[host].ends, when);
    ++hosts_[host].finished;
    for (const std::int32_t later : StateOf(host, op).after_end) {
      RemoveCause(host, later, when);
    }
  }

  // Of several causes the last decides.
  void RemoveCause(std::size_t host, std::int32_t op, std::int64_t when) {
    OpState& state = StateOf(host, op);
    state.ready = std::max(state.ready, when);
    if (--state.causes == 0) {
      RunAt(state.ready, host, op);
    }
  }

  absl::Status CheckDone(std::size_t rank) {
    const Host& host = hosts_[rank];
    if (host.finished == host.ops.size()) {
      return absl::OkStatus();
    }
    std::size_t first = 0;
    if (!host.posted.empty()) {
      first = static_cast<std::size_t>(host.posted.front());
    } else {
      while (host.ops[first].started) {
        ++first;
      }
    }
    return FailedPrecondition("rank %d: %d of %d ops wait for ever, op %d among them", rank,
                              host.ops.size() - host.finished, host.ops.size(), first);
  }

  const GoalProgram& program_;
  const LogGops parameters_;
  std::vector<Host> hosts_;
  std::priority_queue<Event> events_;
  std::int64_t next_order_ = 0;
  std::int64_t now_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<std::int64_t>> PlayGoal(const GoalProgram& program,
                                                   const LogGops& parameters) {
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    for (const GoalOp& op : program.ranks[rank]) {
      if (op.kind != Kind::kCalc && op.size > parameters.most_eager) {
        return InvalidArgument(
            "rank %d has a message of %d bytes: above %d it would need a rendezvous, which is not "
            "modelled; raise S",
            rank, op.size, parameters.most_eager);
      }
    }
  }
  return GoalPlayer(program, parameters).Play();
}

absl::StatusOr<GoalProgram> GoalOf(const collectives::Schedule& schedule, Bytes size) {
  constexpr std::size_t kMostOps = std::size_t{1} << 24;
  const std::int64_t chunks = std::max(schedule.input_chunks, schedule.output_chunks);
  GoalProgram program;
  std::size_t ops = 0;
  for (Rank rank = 0; rank < schedule.group_size; ++rank) {
    std::vector<GoalOp>& list = program.ranks.emplace_back();
    std::vector<std::int32_t> last;  // [channel]
    for (const collectives::Op& op : schedule.ops_of(rank)) {
      GoalOp goal{.kind = op.kind == collectives::OpKind::kSend ? Kind::kSend
                          : collectives::IsReceive(op.kind)     ? Kind::kRecv
                                                                : Kind::kCalc,
                  .peer = op.peer,
                  .tag = op.channel,
                  .after = op.after};
      if (goal.kind != Kind::kCalc) {
        goal.size = (op.count * size + chunks - 1) / chunks;
      }
      last.resize(std::max(last.size(), static_cast<std::size_t>(op.channel) + 1), -1);
      std::int32_t& before = last[static_cast<std::size_t>(op.channel)];
      if (before >= 0) {
        goal.after_start.push_back(before);
      }
      before = static_cast<std::int32_t>(list.size());
      list.push_back(std::move(goal));
      if (++ops > kMostOps) {
        return ResourceExhausted("%s over %d ranks has more than %d ops", schedule.name,
                                 schedule.group_size, kMostOps);
      }
    }
  }
  return program;
}

}  // namespace ranklab::sim
