#include "collectives/schedule/print.h"

#include <absl/strings/str_format.h>

#include "collectives/schedule/proof.h"
#include "core/status.h"

namespace ranklab::collectives {
namespace {

std::string PrintChunks(std::int32_t first, std::int32_t count) {
  return count == 1 ? absl::StrFormat("chunk %d", first)
                    : absl::StrFormat("chunks %d-%d", first, first + count - 1);
}

}  // namespace

std::string PrintOp(const Op& op) {
  std::string text = absl::StrFormat("%s %s", NameOf(op.kind), PrintChunks(op.chunk, op.count));
  switch (op.kind) {
    case OpKind::kSend:
      absl::StrAppendFormat(&text, " to rank %d", op.peer);
      break;
    case OpKind::kRecv:
    case OpKind::kRecvReduce:
      absl::StrAppendFormat(&text, " from rank %d", op.peer);
      break;
    case OpKind::kCopy:
    case OpKind::kReduce:
      absl::StrAppendFormat(&text, " from %s", PrintChunks(op.source, op.count));
      break;
  }
  if (op.channel != 0) {
    absl::StrAppendFormat(&text, " in channel %d", op.channel);
  }
  return text;
}

std::string NameOfOp(Rank rank, OpIndex index, const Op& op) {
  return absl::StrFormat("rank %d, op %d (%s)", rank, index, PrintOp(op));
}

std::string PrintSchedule(const Schedule& schedule) {
  std::string text =
      absl::StrFormat("%s %s: %d ranks, %d input, %d output, %d scratch chunks\n", schedule.name,
                      NameOf(schedule.collective), schedule.group_size, schedule.input_chunks,
                      schedule.output_chunks, schedule.scratch_chunks);
  for (Rank rank = 0; rank < schedule.group_size; ++rank) {
    absl::StrAppendFormat(&text, "rank %d\n", rank);
    const std::vector<Op> ops = schedule.ops_of(rank);
    for (OpIndex i = 0; i < static_cast<OpIndex>(ops.size()); ++i) {
      const Op& op = ops[static_cast<std::size_t>(i)];
      absl::StrAppendFormat(&text, "  %d: %s", i, PrintOp(op));
      for (std::size_t k = 0; k < op.after.size(); ++k) {
        absl::StrAppendFormat(&text, "%s %d", k == 0 ? ", after" : ",", op.after[k]);
      }
      text += '\n';
    }
  }
  return text;
}

absl::StatusOr<std::string> PrintGraph(const Schedule& schedule) {
  const OpLists lists(schedule);
  ASSIGN_OR_RETURN(const Pairing pairing, PairMessages(lists));
  std::string text = absl::StrFormat(
      "digraph \"%s %s\" {\n  rankdir=LR;\n  node [shape=box, fontname=\"monospace\"];\n",
      schedule.name, NameOf(schedule.collective));
  for (Rank rank = 0; rank < lists.ranks(); ++rank) {
    absl::StrAppendFormat(&text, "  subgraph cluster_%d {\n    label=\"rank %d\";\n", rank, rank);
    for (OpIndex i = 0; i < static_cast<OpIndex>(lists.of(rank).size()); ++i) {
      const Op& op = lists.of(rank)[static_cast<std::size_t>(i)];
      absl::StrAppendFormat(&text, "    r%d_%d [label=\"%d: %s\"];\n", rank, i, i, PrintOp(op));
      for (const OpIndex earlier : op.after) {
        absl::StrAppendFormat(&text, "    r%d_%d -> r%d_%d;\n", rank, earlier, rank, i);
      }
    }
    text += "  }\n";
  }
  for (OpLists::Id id = 0; id < lists.size(); ++id) {
    if (lists.at(id).kind == OpKind::kSend) {
      const OpLists::Id receive = pairing[static_cast<std::size_t>(id)];
      absl::StrAppendFormat(&text, "  r%d_%d -> r%d_%d [style=bold];\n", lists.RankOf(id),
                            lists.IndexOf(id), lists.RankOf(receive), lists.IndexOf(receive));
    }
  }
  return text + "}\n";
}

}  // namespace ranklab::collectives
