#pragma once

#include <cstdint>
#include <string>

#include <absl/strings/str_format.h>

namespace ranklab::ps {

// Consecutive elements of the flattened model.
struct KeyRange {
  std::int64_t begin = 0;  // first element
  std::int64_t end = 0;    // one past the last

  std::int64_t size() const { return end - begin; }
  bool empty() const { return begin == end; }
  bool Contains(KeyRange part) const {
    return begin <= part.begin && part.begin <= part.end && part.end <= end;
  }

  friend bool operator==(const KeyRange&, const KeyRange&) = default;
};

// "[0, 12)", for messages.
inline std::string NameOf(KeyRange range) {
  return absl::StrFormat("[%d, %d)", range.begin, range.end);
}

}  // namespace ranklab::ps
