#include <algorithm>
#include <utility>

#include "collectives/schedule/promise.h"
#include "collectives/schedule/proof.h"
#include "core/check.h"
#include "core/status.h"

namespace ranklab::collectives {
namespace {

// What a chunk holds: the contributions of `ranks` to one position, reduced; or nothing known.
struct Symbol {
  Position position = -1;
  std::vector<std::uint64_t> ranks;  // a bit each

  bool known() const { return position >= 0; }
  bool Has(Rank rank) const {
    return (ranks[static_cast<std::size_t>(rank) / 64] >> (rank % 64)) & 1;
  }
};

std::string PrintRanks(const Symbol& symbol, Rank group_size) {
  std::string text;
  for (Rank rank = 0; rank < group_size; ++rank) {
    if (symbol.Has(rank)) {
      text += absl::StrFormat("%s%d", text.empty() ? "" : ",", rank);
    }
  }
  return "{" + text + "}";
}

std::string PrintSymbol(const Symbol& symbol, Rank group_size) {
  return symbol.known() ? absl::StrFormat("position %d of ranks %s", symbol.position,
                                          PrintRanks(symbol, group_size))
                        : "nothing known";
}

// All chunks of all ranks.
class SymbolicMemory {
 public:
  explicit SymbolicMemory(const Schedule& schedule)
      : schedule_(schedule),
        symbols_(static_cast<std::size_t>(schedule.group_size) *
                 static_cast<std::size_t>(schedule.chunks())) {
    for (Rank rank = 0; rank < schedule.group_size; ++rank) {
      for (std::int32_t chunk = 0; chunk < schedule.chunks(); ++chunk) {
        Symbol& symbol = at(rank, chunk);
        symbol.ranks.resize((static_cast<std::size_t>(schedule.group_size) + 63) / 64);
        if (const auto position = ContributionOf(schedule, rank, chunk)) {
          symbol.position = *position;
          symbol.ranks[static_cast<std::size_t>(rank) / 64] |= std::uint64_t{1} << (rank % 64);
        }
      }
    }
  }

  Symbol& at(Rank rank, std::int32_t chunk) {
    return symbols_[static_cast<std::size_t>(rank) * static_cast<std::size_t>(schedule_.chunks()) +
                    static_cast<std::size_t>(chunk)];
  }

  // The chunks [first, first + count).
  std::vector<Symbol> Read(Rank rank, std::int32_t first, std::int32_t count) {
    return {&at(rank, first), &at(rank, first) + count};
  }

  // target = target (op) source.
  absl::Status Reduce(Symbol& target, const Symbol& source) const {
    if (!target.known() || !source.known() || target.position != source.position) {
      return FailedPrecondition("reduces %s into %s", Print(source), Print(target));
    }
    const bool may_come_twice = schedule_.collective == Collective::kBarrier;
    for (std::size_t w = 0; w < target.ranks.size(); ++w) {
      if ((target.ranks[w] & source.ranks[w]) != 0 && !may_come_twice) {
        return FailedPrecondition("counts a contribution twice: reduces %s into %s", Print(source),
                                  Print(target));
      }
      target.ranks[w] |= source.ranks[w];
    }
    return absl::OkStatus();
  }

  bool Keeps(const Result& promise, const Symbol& symbol) const {
    Rank holds = 0;
    for (Rank rank = 0; rank < schedule_.group_size; ++rank) {
      holds += symbol.Has(rank);
    }
    return symbol.position == promise.position &&
           (promise.contributor ? holds == 1 && symbol.Has(*promise.contributor)
                                : holds == schedule_.group_size);
  }

  std::string Print(const Symbol& symbol) const {
    return PrintSymbol(symbol, schedule_.group_size);
  }

 private:
  const Schedule& schedule_;
  std::vector<Symbol> symbols_;
};

// An op happens in two events: it starts, and it finishes. Runs events whose causes have happened
// until there are none left (Kahn's algorithm). Which order is taken does not matter for the
// result, because no two ops that may overlap conflict.
class SymbolicRun {
 public:
  SymbolicRun(const Schedule& schedule, const OpLists& lists, const Pairing& pairing)
      : schedule_(schedule),
        lists_(lists),
        pairing_(pairing),
        memory_(schedule),
        causes_left_(2 * static_cast<std::size_t>(lists.size())),
        effects_(causes_left_.size()),
        sent_(static_cast<std::size_t>(lists.size())) {
    for (Rank rank = 0; rank < lists.ranks(); ++rank) {
      Connect(rank);
    }
  }

  absl::Status Run() {
    std::vector<Event> ready;
    for (std::size_t event = 0; event < causes_left_.size(); ++event) {
      if (causes_left_[event] == 0) {
        ready.push_back(static_cast<Event>(event));
      }
    }
    std::size_t happened = 0;
    while (!ready.empty()) {
      const Event event = ready.back();
      ready.pop_back();
      ++happened;
      RETURN_IF_ERROR(Happen(event));
      for (const Event effect : effects_[static_cast<std::size_t>(event)]) {
        if (--causes_left_[static_cast<std::size_t>(effect)] == 0) {
          ready.push_back(effect);
        }
      }
    }
    if (happened < causes_left_.size()) {
      return DescribeDeadlock();
    }
    return CheckPromises();
  }

 private:
  using Event = std::int64_t;  // 2 id: the op starts; 2 id + 1: it finishes
  static Event StartOf(OpLists::Id id) { return 2 * Event{id}; }
  static Event FinishOf(OpLists::Id id) { return 2 * Event{id} + 1; }

  void Cause(Event cause, Event effect) {
    effects_[static_cast<std::size_t>(cause)].push_back(effect);
    ++causes_left_[static_cast<std::size_t>(effect)];
  }

  void Connect(Rank rank) {
    const std::vector<Op>& ops = lists_.of(rank);
    std::vector<std::pair<std::int32_t, OpLists::Id>> last_in_channel;
    for (OpIndex i = 0; i < static_cast<OpIndex>(ops.size()); ++i) {
      const Op& op = ops[static_cast<std::size_t>(i)];
      const OpLists::Id id = lists_.IdOf(rank, i);
      Cause(StartOf(id), FinishOf(id));
      for (const OpIndex other : op.after) {
        Cause(FinishOf(lists_.IdOf(rank, other)), StartOf(id));
      }
      const auto last = std::find_if(last_in_channel.begin(), last_in_channel.end(),
                                     [&](const auto& entry) { return entry.first == op.channel; });
      if (last == last_in_channel.end()) {
        last_in_channel.emplace_back(op.channel, id);
      } else {
        Cause(StartOf(last->second), StartOf(id));
        last->second = id;
      }
      // A receive needs its send to have started; a send may need its receive to have started.
      if (const OpLists::Id other = pairing_[static_cast<std::size_t>(id)]; other >= 0) {
        Cause(StartOf(other), FinishOf(id));
      }
    }
  }

  absl::Status Happen(Event event) {
    const auto id = static_cast<OpLists::Id>(event / 2);
    const Op& op = lists_.at(id);
    const Rank rank = lists_.RankOf(id);
    if (event == StartOf(id)) {
      if (op.kind == OpKind::kSend) {
        sent_[static_cast<std::size_t>(id)] = memory_.Read(rank, op.chunk, op.count);
      }
      return absl::OkStatus();
    }
    if (op.kind == OpKind::kSend) {
      return absl::OkStatus();
    }
    const std::vector<Symbol> source =
        IsLocal(op.kind)
            ? memory_.Read(rank, op.source, op.count)
            : std::exchange(sent_[static_cast<std::size_t>(pairing_[static_cast<std::size_t>(id)])],
                            {});
    return Write(id, source);
  }

  absl::Status Write(OpLists::Id id, const std::vector<Symbol>& source) {
    const Op& op = lists_.at(id);
    const bool reduces = op.kind == OpKind::kRecvReduce || op.kind == OpKind::kReduce;
    for (std::int32_t i = 0; i < op.count; ++i) {
      Symbol& target = memory_.at(lists_.RankOf(id), op.chunk + i);
      if (!reduces) {
        target = source[static_cast<std::size_t>(i)];
      } else if (absl::Status status = memory_.Reduce(target, source[static_cast<std::size_t>(i)]);
                 !status.ok()) {
        return FailedPrecondition("%s: chunk %d %s", lists_.NameOf(id), op.chunk + i,
                                  MessageOf(status));
      }
    }
    return absl::OkStatus();
  }

  // Follows causes that have not happened until one comes again.
  absl::Status DescribeDeadlock() const {
    std::vector<Event> cause_of(causes_left_.size(), -1);
    Event at = -1;
    for (std::size_t event = 0; event < causes_left_.size(); ++event) {
      if (causes_left_[event] == 0) {
        continue;
      }
      at = at < 0 ? static_cast<Event>(event) : at;
      for (const Event effect : effects_[event]) {
        cause_of[static_cast<std::size_t>(effect)] = static_cast<Event>(event);
      }
    }
    std::vector<bool> seen(causes_left_.size());
    while (!seen[static_cast<std::size_t>(at)]) {
      seen[static_cast<std::size_t>(at)] = true;
      at = cause_of[static_cast<std::size_t>(at)];
      RANKLAB_CHECK(at >= 0, "an event that did not happen has a cause that did not");
    }
    const Event first = at;
    std::string circle;
    do {
      const auto id = static_cast<OpLists::Id>(at / 2);
      at = cause_of[static_cast<std::size_t>(at)];
      if (const auto next = static_cast<OpLists::Id>(at / 2); next != id) {
        circle += absl::StrFormat("%s%s", circle.empty() ? "" : ", which waits for ",
                                  lists_.NameOf(next));
      }
    } while (at != first);
    return FailedPrecondition("%s waits for ever: it waits for %s",
                              lists_.NameOf(static_cast<OpLists::Id>(first / 2)), circle);
  }

  absl::Status CheckPromises() {
    for (Rank rank = 0; rank < schedule_.group_size; ++rank) {
      for (std::int32_t chunk = 0; chunk < schedule_.chunks(); ++chunk) {
        const auto promise = PromiseOf(schedule_, rank, chunk);
        const Symbol& symbol = memory_.at(rank, chunk);
        if (promise && !memory_.Keeps(*promise, symbol)) {
          return FailedPrecondition(
              "%s: it ends with %s, but %s promises position %d of %s", NameLastWriter(rank, chunk),
              memory_.Print(symbol), NameOf(schedule_.collective), promise->position,
              promise->contributor ? absl::StrFormat("rank %d", *promise->contributor)
                                   : "all ranks");
        }
      }
    }
    return absl::OkStatus();
  }

  // "chunk 3 of rank 1, last written by op 5 (...)".
  std::string NameLastWriter(Rank rank, std::int32_t chunk) const {
    const std::vector<Op>& ops = lists_.of(rank);
    for (auto i = static_cast<OpIndex>(ops.size()) - 1; i >= 0; --i) {
      bool writes_it = false;
      ForEachAccess(ops[static_cast<std::size_t>(i)], [&](std::int32_t touched, bool writes) {
        writes_it |= writes && touched == chunk;
      });
      if (writes_it) {
        return absl::StrFormat("chunk %d, last written by %s", chunk,
                               lists_.NameOf(lists_.IdOf(rank, i)));
      }
    }
    return absl::StrFormat("chunk %d of rank %d, which no op writes", chunk, rank);
  }

  const Schedule& schedule_;
  const OpLists& lists_;
  const Pairing& pairing_;
  SymbolicMemory memory_;
  std::vector<std::int32_t> causes_left_;    // by event
  std::vector<std::vector<Event>> effects_;  // by event
  std::vector<std::vector<Symbol>> sent_;    // by op: a send's message under way
};

}  // namespace

absl::Status RunOnSymbols(const Schedule& schedule, const OpLists& lists, const Pairing& pairing) {
  return SymbolicRun(schedule, lists, pairing).Run();
}

}  // namespace ranklab::collectives
