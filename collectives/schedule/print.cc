#include "collectives/schedule/print.h"

#include <absl/strings/str_format.h>

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

}  // namespace ranklab::collectives
