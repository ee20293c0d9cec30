#include "collectives/schedule/op_list.h"

#include <algorithm>
#include <functional>

namespace ranklab::collectives {

void OpList::AddMessage(OpKind kind, Rank peer, Chunks chunks, std::int32_t channel) {
  Add({.kind = kind,
       .peer = peer,
       .chunk = chunks.first,
       .count = chunks.count,
       .channel = channel});
}

void OpList::AddLocal(OpKind kind, Chunks target, std::int32_t source, std::int32_t channel) {
  Add({.kind = kind,
       .chunk = target.first,
       .count = target.count,
       .source = source,
       .channel = channel});
}

void OpList::Add(Op op) {
  if (op.count == 0) {
    return;
  }
  const OpIndex index = size();
  finished_.Append(op.channel);
  std::vector<OpIndex> causes;
  for (const auto& conflict : conflicts_.Next(index, op)) {
    causes.push_back(conflict.earlier);
  }
  // The latest first: what it waited for need not be waited for again.
  std::sort(causes.begin(), causes.end(), std::greater<>());
  for (const OpIndex cause : causes) {
    if (!finished_.Contains(index, cause)) {
      finished_.WaitFor(cause);
      op.after.push_back(cause);
    }
  }
  std::reverse(op.after.begin(), op.after.end());
  ops_.push_back(std::move(op));
}

}  // namespace ranklab::collectives
