// Ranks that stand for others: the coarsest partition of a group in which ranks of one class run
// the same list, are disturbed alike, and for each op of it have peers of one class across links of
// one kind. By induction over the instants they then do the same at the same time, so that one of
// each class is played for all of it: exact, not an approximation. Colour refinement; source:
// Weisfeiler and Leman, "The reduction of a graph to canonical form", NTI 2(9), 1968.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fabric/collective_cost.h"
#include "sim/disturbances.h"
#include "sim/rank_programs.h"

namespace ranklab::sim {

struct RankClasses {
  std::vector<Rank> representative;    // [class], its lowest rank
  std::vector<std::int32_t> members;   // [class], how many
  std::vector<std::int32_t> class_of;  // [rank]
  std::string gave_up;                 // why each rank is a class of its own; empty: it is not so
};

// Each rank by itself.
RankClasses NobodyAlike(int ranks);

// `most_ops`: of all representatives together; refining gives up beyond it, for then folding would
// not help. Gives up too where the schedule promises no symmetry. Cost: O(ranks x different peers
// of a rank) a round, at most as many rounds as classes.
RankClasses FindRanksAlike(const RankPrograms& programs, int ranks, const fabric::CostModel& model,
                           const Disturbances& disturbances, std::int64_t most_ops);

}  // namespace ranklab::sim
