#include "collectives/schedule/proof.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "collectives/schedule/print.h"
#include "core/check.h"
#include "core/status.h"

namespace ranklab::collectives {
namespace {

bool InOneBuffer(const Schedule& schedule, std::int32_t first, std::int32_t count) {
  std::int64_t begin = 0;
  for (const std::int64_t chunks :
       {schedule.input_chunks, schedule.output_chunks, schedule.scratch_chunks}) {
    if (first >= begin && std::int64_t{first} + count <= begin + chunks) {
      return true;
    }
    begin += chunks;
  }
  return false;
}

absl::Status CheckOp(const Schedule& schedule, const OpLists& lists, Rank rank, OpIndex index) {
  const Op& op = lists.of(rank)[static_cast<std::size_t>(index)];
  const auto wrong = [&](const std::string& what) {
    return FailedPrecondition("%s: %s", lists.NameOf(lists.IdOf(rank, index)), what);
  };
  if (op.count < 1 || !InOneBuffer(schedule, op.chunk, op.count)) {
    return wrong(
        absl::StrFormat("chunks outside of one buffer; there are %d input, %d output, %d "
                        "scratch chunks",
                        schedule.input_chunks, schedule.output_chunks, schedule.scratch_chunks));
  }
  if (op.channel < 0) {
    return wrong("negative channel");
  }
  if (IsLocal(op.kind)) {
    if (op.peer != -1) {
      return wrong("a local op with a peer");
    }
    if (!InOneBuffer(schedule, op.source, op.count)) {
      return wrong("source chunks outside of one buffer");
    }
    if (std::abs(std::int64_t{op.source} - op.chunk) < op.count) {
      return wrong("source and target overlap");
    }
  } else if (op.peer < 0 || op.peer >= schedule.group_size || op.peer == rank) {
    return wrong(
        absl::StrFormat("the peer must be another of the ranks 0 to %d", schedule.group_size - 1));
  }
  for (const OpIndex other : op.after) {
    if (other < 0 || other >= index) {
      return wrong(absl::StrFormat("waits for op %d, which is not before it in the list", other));
    }
  }
  return absl::OkStatus();
}

// One direction of a pair of ranks in one channel: its sends and receives in list order.
struct Stream {
  std::vector<OpLists::Id> sends;
  std::vector<OpLists::Id> receives;
};

}  // namespace

OpLists::OpLists(const Schedule& schedule) : schedule_(schedule), first_{0} {
  std::int64_t total = 0;
  for (Rank rank = 0; rank < schedule.group_size; ++rank) {
    lists_.push_back(schedule.ops_of(rank));
    total += static_cast<std::int64_t>(lists_.back().size());
    RANKLAB_CHECK(total <= std::numeric_limits<Id>::max(), "%d ops", total);
    first_.push_back(static_cast<Id>(total));
  }
}

Rank OpLists::RankOf(Id id) const {
  return static_cast<Rank>(std::upper_bound(first_.begin(), first_.end(), id) - first_.begin()) - 1;
}

std::string OpLists::NameOf(Id id) const {
  const std::string name = NameOfOp(RankOf(id), IndexOf(id), at(id));
  return schedule_.origin_of == nullptr
             ? name
             : absl::StrFormat("%s [%s]", name, schedule_.origin_of(RankOf(id), IndexOf(id)));
}

absl::Status CheckOps(const Schedule& schedule, const OpLists& lists) {
  for (Rank rank = 0; rank < lists.ranks(); ++rank) {
    for (OpIndex i = 0; i < static_cast<OpIndex>(lists.of(rank).size()); ++i) {
      RETURN_IF_ERROR(CheckOp(schedule, lists, rank, i));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Pairing> PairMessages(const OpLists& lists) {
  std::map<std::tuple<Rank, Rank, std::int32_t>, Stream> streams;  // sender, receiver, channel
  for (OpLists::Id id = 0; id < lists.size(); ++id) {
    const Op& op = lists.at(id);
    const Rank rank = lists.RankOf(id);
    if (op.kind == OpKind::kSend) {
      streams[{rank, op.peer, op.channel}].sends.push_back(id);
    } else if (IsReceive(op.kind)) {
      streams[{op.peer, rank, op.channel}].receives.push_back(id);
    }
  }
  Pairing pairing(static_cast<std::size_t>(lists.size()), -1);
  for (const auto& [direction, stream] : streams) {
    const std::size_t paired = std::min(stream.sends.size(), stream.receives.size());
    for (std::size_t k = 0; k < paired; ++k) {
      const OpLists::Id send = stream.sends[k];
      const OpLists::Id receive = stream.receives[k];
      if (lists.at(send).count != lists.at(receive).count) {
        return FailedPrecondition("%s meets %s, of another number of chunks", lists.NameOf(send),
                                  lists.NameOf(receive));
      }
      pairing[static_cast<std::size_t>(send)] = receive;
      pairing[static_cast<std::size_t>(receive)] = send;
    }
    if (stream.sends.size() != stream.receives.size()) {
      const bool sends_left = stream.sends.size() > paired;
      return FailedPrecondition(
          "%s has no %s: rank %d sends %d messages to rank %d in channel %d, which receives %d",
          lists.NameOf(sends_left ? stream.sends[paired] : stream.receives[paired]),
          sends_left ? "receive" : "send", std::get<0>(direction), stream.sends.size(),
          std::get<1>(direction), std::get<2>(direction), stream.receives.size());
    }
  }
  return pairing;
}

absl::Status CheckSizes(const Schedule& schedule, const OpLists& lists, const Pairing& pairing) {
  if (schedule.needs_equal_chunks()) {
    return absl::OkStatus();
  }
  const auto like = [&](Rank rank, std::int32_t chunk) {
    return chunk < schedule.first_scratch_chunk()
               ? chunk
               : schedule.scratch_like(rank, chunk - schedule.first_scratch_chunk());
  };
  for (OpLists::Id id = 0; id < lists.size(); ++id) {
    const Op& op = lists.at(id);
    const Rank rank = lists.RankOf(id);
    const OpLists::Id other = pairing[static_cast<std::size_t>(id)];
    const Rank from = other < 0 ? rank : lists.RankOf(other);
    const std::int32_t source = other < 0 ? op.source : lists.at(other).chunk;
    for (std::int32_t i = 0; i < op.count; ++i) {
      if (like(rank, op.chunk + i) != like(from, source + i)) {
        return FailedPrecondition(
            "%s: chunk %d of rank %d and chunk %d of rank %d differ in size when the buffer is "
            "not cut evenly",
            lists.NameOf(id), op.chunk + i, rank, source + i, from);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace ranklab::collectives
