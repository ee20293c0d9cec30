#include "ps/coverage.h"

#include <iterator>

#include "core/check.h"

namespace ranklab::ps {

Coverage::Found Coverage::Find(KeyRange part) const {
  if (part.empty()) {
    return Found::kAll;
  }
  const auto after = ends_.upper_bound(part.begin);
  if (after != ends_.begin() && std::prev(after)->second > part.begin) {
    return std::prev(after)->second >= part.end ? Found::kAll : Found::kSome;
  }
  return after != ends_.end() && after->first < part.end ? Found::kSome : Found::kNone;
}

void Coverage::Add(KeyRange part) {
  RANKLAB_CHECK(Find(part) == Found::kNone, "%s is here already", NameOf(part));
  auto after = ends_.upper_bound(part.begin);
  if (after != ends_.end() && after->first == part.end) {
    part.end = after->second;
    after = ends_.erase(after);
  }
  if (after != ends_.begin() && std::prev(after)->second == part.begin) {
    std::prev(after)->second = part.end;
  } else {
    ends_.emplace_hint(after, part.begin, part.end);
  }
}

}  // namespace ranklab::ps
