// Groups that are no power of two: neighbours pair up until a power of two is left. The even rank
// of a pair takes part for both.
#pragma once

#include <cstddef>
#include <vector>

#include "core/log2.h"
#include "core/units.h"

namespace ranklab::collectives {

// Ranks 0 to 2 pairs - 1 form the pairs.
struct Folding {
  int core = 1;   // ranks that take part: the largest power of two in the group
  int pairs = 0;  // group size - core

  explicit constexpr Folding(int group_size)
      : core(1 << FloorLog2(group_size)), pairs(group_size - core) {}

  // Digits of a schedule's symmetry: one a bit if nobody is paired, for then all ranks do the same.
  std::vector<int> Bits() const {
    return pairs > 0 ? std::vector<int>()
                     : std::vector<int>(static_cast<std::size_t>(FloorLog2(core)), 2);
  }

  constexpr bool paired(Rank rank) const { return rank < 2 * pairs; }
  constexpr bool folded(Rank rank) const { return paired(rank) && rank % 2 == 1; }
  // Of a rank that takes part: its number among them, and back. RankOf(core) is the group size.
  constexpr int NumberOf(Rank rank) const { return paired(rank) ? rank / 2 : rank - pairs; }
  constexpr Rank RankOf(int number) const { return number < pairs ? 2 * number : number + pairs; }
};

}  // namespace ranklab::collectives
