#pragma once

#include <cstdint>
#include <map>

#include "ps/key_range.h"

namespace ranklab::ps {

// Which elements have come. Neighbouring parts are joined, so that parts in order cost O(1) memory.
class Coverage {
 public:
  enum class Found : std::uint8_t {
    kNone,  // nothing of the part is here
    kSome,  // some elements are, others are not
    kAll,
  };

  // Of an empty part: kAll.
  Found Find(KeyRange part) const;

  // Requires: Find(part) is kNone.
  void Add(KeyRange part);

  bool empty() const { return ends_.empty(); }
  void Clear() { ends_.clear(); }

 private:
  std::map<std::int64_t, std::int64_t> ends_;  // begin -> end; neither overlap nor touch
};

}  // namespace ranklab::ps
