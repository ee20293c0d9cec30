// Recursive halving and doubling among the ranks that take part in a folded group, each in its turn
// with the one whose number differs in one bit.
#pragma once

#include "collectives/schedule/folding.h"
#include "collectives/schedule/op_list.h"

namespace ranklab::collectives {

// In both, chunks_of(first, count): of the numbers [first, first + count).

// Reduce-scatter: in the end `number` has the chunks of its own, reduced.
template <typename ChunksOf>
void Halve(OpList& list, const Folding& folding, int number, ChunksOf chunks_of) {
  for (int half = folding.core / 2; half >= 1; half /= 2) {
    const Rank peer = folding.RankOf(number ^ half);
    const int kept = number & ~(half - 1);
    list.Send(peer, chunks_of(kept ^ half, half));
    list.RecvReduce(peer, chunks_of(kept, half));
  }
}

// All-gather: begins with the chunks of its own, ends with all.
template <typename ChunksOf>
void Double(OpList& list, const Folding& folding, int number, ChunksOf chunks_of) {
  for (int count = 1; count < folding.core; count *= 2) {
    const Rank peer = folding.RankOf(number ^ count);
    const int mine = number & ~(count - 1);
    list.Send(peer, chunks_of(mine, count));
    list.Recv(peer, chunks_of(mine ^ count, count));
  }
}

}  // namespace ranklab::collectives
