// Seeded faults in proved schedules: the verifier must reject every one.
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

Schedule WithLists(const Schedule& original, Lists lists) {
  Schedule schedule;
  schedule.name = original.name;
  schedule.collective = original.collective;
  schedule.group_size = original.group_size;
  schedule.input_chunks = original.input_chunks;
  schedule.output_chunks = original.output_chunks;
  schedule.scratch_chunks = original.scratch_chunks;
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

bool Any(const Op&) { return true; }

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
std::optional<std::string> DropOp(Random& random, const Schedule&, Lists& lists) {
  const auto place = Choose(random, lists, Any);
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

std::optional<std::string> SwapPeer(Random& random, const Schedule& schedule, Lists& lists) {
  const auto place = Choose(random, lists, Any);
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

std::optional<std::string> WrongChunk(Random& random, const Schedule& schedule, Lists& lists) {
  const auto place = Choose(random, lists, Any);
  if (!place) {
    return std::nullopt;
  }
  Op& op = At(lists, *place);
  const std::int32_t before = op.chunk;
  do {
    op.chunk = static_cast<std::int32_t>(
        random.Below(static_cast<std::uint64_t>(schedule.chunks() - op.count + 1)));
  } while (op.chunk == before);
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

// Message and reduction happen twice, in order and paired: nothing is wrong but the sum.
std::optional<std::string> DuplicateReduction(Random& random, const Schedule&, Lists& lists) {
  const auto place =
      Choose(random, lists, [](const Op& op) { return op.kind == OpKind::kRecvReduce; });
  if (!place) {
    return std::nullopt;
  }
  const Op reduction = At(lists, *place);
  std::vector<Op>& receiver = lists[static_cast<std::size_t>(place->rank)];
  std::vector<Op>& sender = lists[static_cast<std::size_t>(reduction.peer)];
  const auto is_message = [&](const Op& op, OpKind kind, Rank peer) {
    return op.kind == kind && op.peer == peer && op.channel == reduction.channel;
  };
  std::int64_t number = 0;  // of the message
  for (std::size_t i = 0; i < place->index; ++i) {
    number +=
        IsReceive(receiver[i].kind) && is_message(receiver[i], receiver[i].kind, reduction.peer);
  }
  std::size_t send = 0;
  while (!is_message(sender[send], OpKind::kSend, place->rank) || number-- > 0) {
    ++send;
  }
  InsertCopy(receiver, place->index);
  InsertCopy(sender, send);
  return "twice: " + NameOfOp(place->rank, static_cast<OpIndex>(place->index), reduction);
}

struct NamedMutation {
  std::string name;
  Mutation mutate;
  std::string reason;  // that one of the verdicts must give
};

const std::array<NamedMutation, 5> kMutations = {{
    {"DropOp", DropOp, "has no"},
    {"SwapPeer", SwapPeer, "has no"},
    {"WrongChunk", WrongChunk, "chunk"},
    {"RemoveDependency", RemoveDependency, "may overlap"},
    {"DuplicateReduction", DuplicateReduction, "counts a contribution twice"},
}};

class Mutants : public ::testing::TestWithParam<NamedMutation> {};

std::uint64_t Seed() {
  const char* seed = std::getenv("RANKLAB_SEED");
  return seed == nullptr ? 20 : std::strtoull(seed, nullptr, 10);
}

// 3 schedules x 5 sizes x 2 chunkings x 12 faults, less those that a schedule has no place for.
TEST_P(Mutants, AreAllRejectedAndNamed) {
  Random random(Seed());
  int made = 0;
  for (const CatalogEntry& entry : Catalog()) {
    for (const int ranks : {2, 3, 5, 8, 16}) {
      for (const int chunks_per_rank : {1, 3}) {
        const Schedule original =
            *entry.build({.group_size = ranks, .chunks_per_rank = chunks_per_rank});
        for (int i = 0; i < 12; ++i) {
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
          EXPECT_THAT(MessageOf(verdict), ::testing::HasSubstr(GetParam().reason)) << *fault;
        }
      }
    }
  }
  EXPECT_GE(made, 200) << "1,000 over the five kinds";
  std::printf("%d mutants rejected\n", made);
}
INSTANTIATE_TEST_SUITE_P(Faults, Mutants, ::testing::ValuesIn(kMutations),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ranklab::collectives
