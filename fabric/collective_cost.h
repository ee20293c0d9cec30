// Closed forms of the collectives' algorithms in the alpha-beta-gamma model: what an ideal network
// would need. P ranks, S bytes of the whole buffer (all-to-all: of one rank), L = floor(log2 P),
// A(m) = alpha + m beta, the time of a message of m bytes. All times in seconds; local copies take
// none. sim/schedule_player plays any schedule under the same models and agrees.
// Sources: Hockney, Parallel Computing 20(3), 1994, for the model; Thakur, Rabenseifner and Gropp,
// IJHPCA 19(1), 2005; Patarasuk and Yuan, JPDC 69(2), 2009; Bruck et al., IEEE TPDS 8(11), 1997.
#pragma once

#include <optional>

#include "core/units.h"
#include "fabric/link_model.h"

namespace ranklab::fabric {

struct CostModel {
  double alpha = 0;  // a message
  double beta = 0;   // a byte on a port, each direction
  double gamma = 0;  // a byte reduced; one reduction at a time a rank and port
  // Model M1: a message holds the sender's and the receiver's port for alpha + m beta. Otherwise
  // M2: alpha is latency only, N messages in a row need alpha + N m beta.
  bool alpha_holds_ports = false;
  // A message begins when its send does, as on live wires. Otherwise its receive must have begun
  // too, so that no message comes before it is wanted.
  bool eager = false;
  int ports = 1;  // of a rank, each direction; channel c uses port c mod ports
  // Two classes of links: between nodes of this many ranks; 0: one class.
  int ranks_per_node = 0;
  double alpha_between = 0;
  double beta_between = 0;

  // Between this rank and that one.
  double Alpha(Rank a, Rank b) const { return Between(a, b) ? alpha_between : alpha; }
  double Beta(Rank a, Rank b) const { return Between(a, b) ? beta_between : beta; }

  bool Between(Rank a, Rank b) const {
    return ranks_per_node > 0 && a / ranks_per_node != b / ranks_per_node;
  }
};

// What a shaped run is compared with: M2, eager, no gamma.
CostModel LiveCostModel(const LinkSpec& port);

struct CollectiveWork {
  int ranks = 1;
  double size = 0;         // S, bytes
  int pieces = 1;          // of a chain
  int channels = 1;        // of a multi-channel ring
  int ranks_per_node = 1;  // of a hierarchical all-reduce; divides ranks
};

// Nothing where there is no closed form for these arguments: the reason is at each. Two classes of
// links: only HierarchicalCost.
using Cost = std::optional<double>;

// (P-1)(A(S/P) + (S/P) gamma), and without gamma; the sum of both. Any ports: it uses one.
Cost RingReduceScatterCost(const CostModel& model, const CollectiveWork& work);
Cost RingAllGatherCost(const CostModel& model, const CollectiveWork& work);
Cost RingAllReduceCost(const CostModel& model, const CollectiveWork& work);

// C channels, N = 2(P-1) steps, m = S/(C P). One port, M1, m gamma <= A(m): N C A(m). One port, M2,
// gamma = 0: max((C-1) m beta + N A(m), alpha + C N m beta): held up by latency, or by the port. C
// ports: N A(m) + (P-1) m gamma. Otherwise none. Bidirectional is C = 2 and has none with one
// port, where the time depends on which direction goes first.
Cost MultiChannelRingCost(const CostModel& model, const CollectiveWork& work);
Cost BidirectionalRingCost(const CostModel& model, const CollectiveWork& work);

// L(A(S) + S gamma) for P = 2^L; else (L+1)(A(S) + S gamma) + A(S), eager: none, for a message of a
// later round may take the port from one of the first.
Cost RecursiveDoublingCost(const CostModel& model, const CollectiveWork& work);

// Q = 2^L: 2L alpha + 2((Q-1)/Q) S beta + ((Q-1)/Q) S gamma; P != Q: also 2A(S/2) + (S/2) gamma +
// A(S), eager: none, as above.
Cost RabenseifnerCost(const CostModel& model, const CollectiveWork& work);

// L alpha + ((P-1)/P) S (beta + gamma), and without gamma. P = 2^L only: otherwise its blocks
// differ in size.
Cost RecursiveReduceScatterCost(const CostModel& model, const CollectiveWork& work);
Cost RecursiveAllGatherCost(const CostModel& model, const CollectiveWork& work);

// H = ceil(log2 P). Reduce: H(A(S) + S gamma); eager: P = 2^L only. Broadcast: M1 H A(S); M2 the
// same for P = 2^L, else the recursion T(P) = max(A(S) + T(P - 2^L), S beta + L A(S)). All-reduce:
// both.
Cost BinomialReduceCost(const CostModel& model, const CollectiveWork& work);
Cost BinomialBroadcastCost(const CostModel& model, const CollectiveWork& work);
Cost BinomialAllReduceCost(const CostModel& model, const CollectiveWork& work);

// From or to rank 0. H alpha + ((P-1)/P) S beta in M1. M2: scatter by the recursion T(P) =
// max(alpha + s b + T(s), s b + L alpha + (2^L - 1) b), s = P - 2^L, b = S beta / P, and as M1 for
// P = 2^L; gather only for P = 2^L.
Cost BinomialGatherCost(const CostModel& model, const CollectiveWork& work);
Cost BinomialScatterCost(const CostModel& model, const CollectiveWork& work);

// K pieces of m = S/K. M1: (P-2+K) A(m); M2: (P-1) alpha + (P-2+K) m beta.
Cost ChainBroadcastCost(const CostModel& model, const CollectiveWork& work);

// M ranks a node, N = P/M nodes:
//   2(M-1)(alpha + (S/M) beta) + (M-1)(S/M) gamma        in the nodes
// + 2(N-1)(alpha' + (S/P) beta') + (N-1)(S/P) gamma      between them
// Two classes: the model's nodes must be the algorithm's.
Cost HierarchicalCost(const CostModel& model, const CollectiveWork& work);

// H alpha + ((P-1)/P) S beta. M2: L alpha instead if 0 < P - 2^L <= 2^L / 2, for then the last
// round sends what was there before the one before it.
Cost BruckAllGatherCost(const CostModel& model, const CollectiveWork& work);
// Sum over k < H of A(n_k S/P), n_k the numbers below P with bit k set: L A(S/2) for P = 2^L.
Cost BruckAllToAllCost(const CostModel& model, const CollectiveWork& work);

// M1: (P-1) A(S/P); M2: alpha + ((P-1)/P) S beta.
Cost PairwiseAllToAllCost(const CostModel& model, const CollectiveWork& work);

// H alpha.
Cost DisseminationBarrierCost(const CostModel& model, const CollectiveWork& work);

}  // namespace ranklab::fabric
