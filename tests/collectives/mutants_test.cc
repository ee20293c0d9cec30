// Seeded faults in proved schedules: the verifier must reject every one.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/schedule/catalog.h"
#include "collectives/schedule/print.h"
#include "collectives/schedule/verify.h"
#include "core/random.h"
#include "core/status.h"

namespace ranklab::collectives {
namespace {

using Lists = std::vector<std::vector<Op>>;

struct Place {
  Rank rank = 0;
  std::size_t index = 0;
};

Op& At(Lists& lists, const Place& place) {
  return lists[static_cast<std::size_t>(place.rank)][place.index];
}

Lists ListsOf(const Schedule& schedule) {
  Lists lists;
  for (Rank rank = 0; rank < schedule.group_size; ++rank) {
    lists.push_back(schedule.ops_of(rank));
  }
  return lists;
}

// `original` must outlive it.
Schedule WithLists(const Schedule& original, Lists lists) {
  Schedule schedule;
  schedule.name = original.name;
  schedule.collective = original.collective;
  schedule.group_size = original.group_size;
  schedule.root = original.root;
  schedule.input_chunks = original.input_chunks;
  schedule.output_chunks = original.output_chunks;
  schedule.scratch_chunks = original.scratch_chunks;
  if (original.scratch_like != nullptr) {
    schedule.scratch_like = [&original](Rank rank, std::int32_t chunk) {
      return original.scratch_like(rank, chunk);
    };
  }
  schedule.ops_of = [lists = std::move(lists)](Rank rank) {
    return lists[static_cast<std::size_t>(rank)];
  };
  return schedule;
}

// Any op of any rank for which `wanted` holds.
std::optional<Place> Choose(Random& random, Lists& lists,
                            const std::function<bool(const Op&)>& wanted) {
  std::vector<Place> places;
  for (Rank rank = 0; rank < static_cast<Rank>(lists.size()); ++rank) {
    for (std::size_t i = 0; i < lists[static_cast<std::size_t>(rank)].size(); ++i) {
      if (wanted(At(lists, {rank, i}))) {
        places.push_back({rank, i});
      }
    }
  }
  return places.empty() ? std::nullopt : std::optional(places[random.Below(places.size())]);
}

bool IsMessage(const Op& op) { return !IsLocal(op.kind); }

// Makes room at `index`, or closes the gap there: renumbers what the later ops wait for.
void Renumber(std::vector<Op>& ops, OpIndex index, OpIndex shift) {
  for (Op& op : ops) {
    for (OpIndex& other : op.after) {
      other += other >= index ? shift : 0;
    }
  }
}

// Each returns what it did, or nothing if the schedule has no place for such a fault.
using Mutation = std::optional<std::string> (*)(Random&, const Schedule&, Lists&);

// What waited for the op now waits for what it waited for, so that only the op itself is missing.
std::optional<std::string> Drop(Random& random, Lists& lists,
                                const std::function<bool(const Op&)>& wanted) {
  const auto place = Choose(random, lists, wanted);
  if (!place) {
    return std::nullopt;
  }
  std::vector<Op>& ops = lists[static_cast<std::size_t>(place->rank)];
  const auto dropped_index = static_cast<OpIndex>(place->index);
  const Op dropped = ops[place->index];
  ops.erase(ops.begin() + dropped_index);
  for (Op& op : ops) {
    if (std::erase(op.after, dropped_index) > 0) {
      op.after.insert(op.after.end(), dropped.after.begin(), dropped.after.end());
    }
  }
  Renumber(ops, dropped_index, -1);
  return "dropped " + NameOfOp(place->rank, dropped_index, dropped);
}

std::optional<std::string> DropMessage(Random& random, const Schedule&, Lists& lists) {
  return Drop(random, lists, IsMessage);
}
std::optional<std::string> DropLocalOp(Random& random, const Schedule&, Lists& lists) {
  return Drop(random, lists, [](const Op& op) { return IsLocal(op.kind); });
}

std::optional<std::string> SwapPeer(Random& random, const Schedule& schedule, Lists& lists) {
  const auto place = Choose(random, lists, IsMessage);
  if (!place || schedule.group_size < 3) {
    return std::nullopt;
  }
  Op& op = At(lists, *place);
  const Rank before = op.peer;
  do {
    op.peer = static_cast<Rank>(random.Below(static_cast<std::uint64_t>(schedule.group_size)));
  } while (op.peer == before || op.peer == place->rank);
  return absl::StrFormat("peer was %d: %s", before,
                         NameOfOp(place->rank, static_cast<OpIndex>(place->index), op));
}

// Whether the list copies one of the two chunks to the other: then either will do.
bool AreCopies(const std::vector<Op>& ops, std::int32_t a, std::int32_t b) {
  return std::any_of(ops.begin(), ops.end(), [&](const Op& op) {
    const auto copies = [&](std::int32_t from, std::int32_t to) {
      return from - op.source == to - op.chunk && from >= op.source && from < op.source + op.count;
    };
    return op.kind == OpKind::kCopy && (copies(a, b) || copies(b, a));
  });
}

std::optional<std::string> WrongChunk(Random& random, const Schedule& schedule, Lists& lists) {
  const auto place =
      Choose(random, lists, [&](const Op& op) { return op.count < schedule.chunks(); });
  if (!place) {
    return std::nullopt;
  }
  Op& op = At(lists, *place);
  const std::int32_t before = op.chunk;
  op.chunk = static_cast<std::int32_t>(
      random.Below(static_cast<std::uint64_t>(schedule.chunks() - op.count + 1)));
  if (op.chunk == before ||
      AreCopies(lists[static_cast<std::size_t>(place->rank)], before, op.chunk)) {
    return std::nullopt;
  }
  return absl::StrFormat("chunk was %d: %s", before,
                         NameOfOp(place->rank, static_cast<OpIndex>(place->index), op));
}

// Every dependency of the catalog's schedules is needed: none follows from the others and the order
// of the channel. A builder that writes a redundant one fails here, and should not write it.
std::optional<std::string> RemoveDependency(Random& random, const Schedule&, Lists& lists) {
  const auto place = Choose(random, lists, [](const Op& op) { return !op.after.empty(); });
  if (!place) {
    return std::nullopt;
  }
  Op& op = At(lists, *place);
  const auto which = static_cast<std::ptrdiff_t>(random.Below(op.after.size()));
  const OpIndex removed = op.after[static_cast<std::size_t>(which)];
  op.after.erase(op.after.begin() + which);
  return absl::StrFormat("no longer after %d: %s", removed,
                         NameOfOp(place->rank, static_cast<OpIndex>(place->index), op));
}

// Inserts a copy right behind the op, which waits for it.
void InsertCopy(std::vector<Op>& ops, std::size_t index) {
  const auto next = static_cast<OpIndex>(index) + 1;
  Renumber(ops, next, 1);
  for (std::size_t i = index + 1; i < ops.size(); ++i) {
    for (std::size_t k = 0, count = ops[i].after.size(); k < count; ++k) {
      if (ops[i].after[k] == next - 1) {
        ops[i].after.push_back(next);
      }
    }
  }
  Op copy = ops[index];
  copy.after = {next - 1};
  ops.insert(ops.begin() + next, copy);
}

// The message that `receive` brings is sent and received twice, in order and paired: nothing is
// wrong but the sum.
void RepeatMessage(Lists& lists, const Place& receive) {
  const Op op = At(lists, receive);
  std::vector<Op>& receiver = lists[static_cast<std::size_t>(receive.rank)];
  std::vector<Op>& sender = lists[static_cast<std::size_t>(op.peer)];
  std::int64_t number = 0;  // of the message in its direction and channel
  for (std::size_t i = 0; i < receive.index; ++i) {
    number += IsReceive(receiver[i].kind) && receiver[i].peer == op.peer &&
              receiver[i].channel == op.channel;
  }
  std::size_t send = 0;
  while (sender[send].kind != OpKind::kSend || sender[send].peer != receive.rank ||
         sender[send].channel != op.channel || number-- > 0) {
    ++send;
  }
  InsertCopy(receiver, receive.index);
  InsertCopy(sender, send);
}

// A barrier's contributions may come twice.
std::optional<std::string> DuplicateReduction(Random& random, const Schedule& schedule,
                                              Lists& lists) {
  const auto place = Choose(random, lists, [](const Op& op) {
    return op.kind == OpKind::kRecvReduce || op.kind == OpKind::kReduce;
  });
  if (!place || schedule.collective == Collective::kBarrier) {
    return std::nullopt;
  }
  const Op reduction = At(lists, *place);
  if (IsLocal(reduction.kind)) {
    InsertCopy(lists[static_cast<std::size_t>(place->rank)], place->index);
  } else {
    RepeatMessage(lists, *place);
  }
  return "twice: " + NameOfOp(place->rank, static_cast<OpIndex>(place->index), reduction);
}

struct NamedMutation {
  std::string name;
  Mutation mutate;
  std::vector<std::string> reasons;  // one of which every verdict must give
};

const std::array<NamedMutation, 6> kMutations = {{
    {"DropMessage", DropMessage, {"has no", "of another number of chunks"}},
    {"DropLocalOp", DropLocalOp, {"it ends with", "reduces", "may overlap"}},
    {"SwapPeer", SwapPeer, {"has no", "of another number of chunks"}},
    {"WrongChunk", WrongChunk, {"chunk"}},
    {"RemoveDependency", RemoveDependency, {"may overlap"}},
    {"DuplicateReduction", DuplicateReduction, {"counts a contribution twice"}},
}};

class Mutants : public ::testing::TestWithParam<NamedMutation> {
 protected:
  static bool GivesReason(const std::string& message) {
    return std::any_of(
        GetParam().reasons.begin(), GetParam().reasons.end(),
        [&](const std::string& reason) { return message.find(reason) != std::string::npos; });
  }
};

std::uint64_t Seed() {
  const char* seed = std::getenv("RANKLAB_SEED");
  return seed == nullptr ? 20 : std::strtoull(seed, nullptr, 10);
}

// All schedules x 5 sizes x 2 chunkings x 6 faults, less those that a schedule has no place for.
TEST_P(Mutants, AreAllRejectedAndNamed) {
  Random random(Seed());
  int made = 0;
  for (const CatalogEntry& entry : Catalog()) {
    for (const int ranks : {2, 3, 5, 8, 16}) {
      for (const int chunks_per_rank : {1, 3}) {
        const Schedule original =
            *entry.build({.group_size = ranks, .chunks_per_rank = chunks_per_rank});
        for (int i = 0; i < 6; ++i) {
          Lists lists = ListsOf(original);
          const auto fault = GetParam().mutate(random, original, lists);
          if (!fault) {
            continue;
          }
          ++made;
          const absl::Status verdict = Verify(WithLists(original, std::move(lists)));
          ASSERT_EQ(verdict.code(), absl::StatusCode::kFailedPrecondition)
              << *fault << " in " << entry.name << " " << NameOf(entry.collective) << " of "
              << ranks << " ranks, " << chunks_per_rank << " chunks a rank\nRANKLAB_SEED=" << Seed()
              << " schedule_test --gtest_filter='*Mutants*" << GetParam().name << "'";
          EXPECT_THAT(MessageOf(verdict),
                      ::testing::AllOf(::testing::HasSubstr("rank "), ::testing::HasSubstr("op "),
                                       ::testing::HasSubstr("chunk")));
          EXPECT_TRUE(GivesReason(MessageOf(verdict))) << *fault << "\n" << MessageOf(verdict);
        }
      }
    }
  }
  EXPECT_GE(made, 200) << "more than 1,000 over the six kinds";
  std::printf("%d mutants rejected\n", made);
}
INSTANTIATE_TEST_SUITE_P(Faults, Mutants, ::testing::ValuesIn(kMutations),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ranklab::collectives
