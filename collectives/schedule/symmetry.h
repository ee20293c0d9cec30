// Ranks that do the same: a schedule whose ranks may be renumbered without changing it.
#pragma once

#include <span>

#include "core/units.h"

namespace ranklab::collectives {

// A rank in mixed radix, `digits` lowest first, moved by another number digit by digit, without
// carries: (r_i + by_i) mod digits_i. One digit: a rotation. Digits of two: r xor by. {per node,
// nodes}: place and node turn each for itself. Requires: 0 <= rank, by < the product of the digits.
constexpr Rank Translate(std::span<const int> digits, Rank rank, Rank by) {
  if (digits.size() == 1) {
    return rank < digits[0] - by ? rank + by : rank - (digits[0] - by);
  }
  Rank moved = 0;
  Rank place = 1;
  for (const int digit : digits) {
    moved += (rank % digit + by % digit) % digit * place;
    rank /= digit;
    by /= digit;
    place *= digit;
  }
  return moved;
}

// What brings a rank that was moved `by` back: Translate(digits, by, Opposite(digits, by)) is 0.
constexpr Rank Opposite(std::span<const int> digits, Rank by) {
  Rank back = 0;
  Rank place = 1;
  for (const int digit : digits) {
    back += (digit - by % digit) % digit * place;
    by /= digit;
    place *= digit;
  }
  return back;
}

}  // namespace ranklab::collectives
