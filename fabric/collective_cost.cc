#include "fabric/collective_cost.h"

#include <algorithm>
#include <bit>

#include "core/check.h"
#include "core/log2.h"

namespace ranklab::fabric {
namespace {

bool IsPowerOfTwo(int n) { return std::has_single_bit(static_cast<unsigned>(n)); }

// One class of links, and a sane question.
bool IsUniform(const CostModel& model, const CollectiveWork& work) {
  RANKLAB_CHECK(work.ranks >= 1 && work.size >= 0);
  return model.ranks_per_node == 0;
}

double MessageTime(const CostModel& model, double bytes) {
  return model.alpha + bytes * model.beta;
}

// A folded group's rounds may cross when messages do not wait to be wanted.
bool MayCross(const CostModel& model, int ranks) { return model.eager && !IsPowerOfTwo(ranks); }

}  // namespace

CostModel LiveCostModel(const LinkSpec& port) {
  return {.alpha = static_cast<double>(port.alpha.count()) * 1e-9,
          .beta = 1.0 / port.bandwidth.bytes_per_second,
          .eager = true};
}

Cost RingReduceScatterCost(const CostModel& model, const CollectiveWork& work) {
  if (!IsUniform(model, work)) {
    return std::nullopt;
  }
  const double block = work.size / work.ranks;
  return (work.ranks - 1) * (MessageTime(model, block) + block * model.gamma);
}

Cost RingAllGatherCost(const CostModel& model, const CollectiveWork& work) {
  if (!IsUniform(model, work)) {
    return std::nullopt;
  }
  return (work.ranks - 1) * MessageTime(model, work.size / work.ranks);
}

Cost RingAllReduceCost(const CostModel& model, const CollectiveWork& work) {
  if (!IsUniform(model, work)) {
    return std::nullopt;
  }
  return *RingReduceScatterCost(model, work) + *RingAllGatherCost(model, work);
}

Cost MultiChannelRingCost(const CostModel& model, const CollectiveWork& work) {
  if (work.channels == 1) {
    return RingAllReduceCost(model, work);
  }
  if (!IsUniform(model, work)) {
    return std::nullopt;
  }
  if (work.ranks == 1) {
    return 0.0;
  }
  const double steps = 2.0 * (work.ranks - 1);
  const double part = work.size / work.channels / work.ranks;
  const double message = MessageTime(model, part);
  if (model.ports == work.channels) {
    return steps * message + (work.ranks - 1) * part * model.gamma;
  }
  if (model.ports != 1) {
    return std::nullopt;
  }
  if (model.alpha_holds_ports) {
    return part * model.gamma <= message ? Cost(steps * work.channels * message) : std::nullopt;
  }
  if (model.gamma > 0) {
    return std::nullopt;
  }
  return std::max((work.channels - 1) * part * model.beta + steps * message,
                  model.alpha + work.channels * steps * part * model.beta);
}

Cost BidirectionalRingCost(const CostModel& model, const CollectiveWork& work) {
  if (model.ports != 2 && work.ranks > 1) {
    return std::nullopt;
  }
  CollectiveWork both = work;
  both.channels = 2;
  return MultiChannelRingCost(model, both);
}

Cost RecursiveDoublingCost(const CostModel& model, const CollectiveWork& work) {
  if (!IsUniform(model, work) || MayCross(model, work.ranks)) {
    return std::nullopt;
  }
  const double round = MessageTime(model, work.size) + work.size * model.gamma;
  const int rounds = FloorLog2(work.ranks);
  return IsPowerOfTwo(work.ranks) ? rounds * round
                                  : (rounds + 1) * round + MessageTime(model, work.size);
}

Cost RabenseifnerCost(const CostModel& model, const CollectiveWork& work) {
  if (!IsUniform(model, work) || MayCross(model, work.ranks)) {
    return std::nullopt;
  }
  const int rounds = FloorLog2(work.ranks);
  const double core = 1 << rounds;
  const double moved = (core - 1) / core * work.size;
  const double halves = 2 * rounds * model.alpha + moved * (2 * model.beta + model.gamma);
  if (IsPowerOfTwo(work.ranks)) {
    return halves;
  }
  const double half = work.size / 2;
  return halves + 2 * MessageTime(model, half) + half * model.gamma + MessageTime(model, work.size);
}

Cost RecursiveReduceScatterCost(const CostModel& model, const CollectiveWork& work) {
  if (!IsUniform(model, work) || !IsPowerOfTwo(work.ranks)) {
    return std::nullopt;
  }
  const double moved = (work.ranks - 1.0) / work.ranks * work.size;
  return FloorLog2(work.ranks) * model.alpha + moved * (model.beta + model.gamma);
}

Cost RecursiveAllGatherCost(const CostModel& model, const CollectiveWork& work) {
  CostModel without = model;
  without.gamma = 0;
  return RecursiveReduceScatterCost(without, work);
}

Cost BinomialReduceCost(const CostModel& model, const CollectiveWork& work) {
  if (!IsUniform(model, work) || MayCross(model, work.ranks)) {
    return std::nullopt;
  }
  return CeilLog2(work.ranks) * (MessageTime(model, work.size) + work.size * model.gamma);
}

Cost BinomialBroadcastCost(const CostModel& model, const CollectiveWork& work) {
  if (!IsUniform(model, work)) {
    return std::nullopt;
  }
  const double message = MessageTime(model, work.size);
  if (model.alpha_holds_ports || IsPowerOfTwo(work.ranks)) {
    return CeilLog2(work.ranks) * message;
  }
  const int rounds = FloorLog2(work.ranks);
  CollectiveWork rest = work;
  rest.ranks = work.ranks - (1 << rounds);
  return std::max(message + *BinomialBroadcastCost(model, rest),
                  work.size * model.beta + rounds * message);
}

Cost BinomialAllReduceCost(const CostModel& model, const CollectiveWork& work) {
  const Cost reduce = BinomialReduceCost(model, work);
  const Cost broadcast = BinomialBroadcastCost(model, work);
  return reduce && broadcast ? Cost(*reduce + *broadcast) : std::nullopt;
}

Cost BinomialGatherCost(const CostModel& model, const CollectiveWork& work) {
  if (!IsUniform(model, work) || (!model.alpha_holds_ports && !IsPowerOfTwo(work.ranks))) {
    return std::nullopt;
  }
  return CeilLog2(work.ranks) * model.alpha +
         (work.ranks - 1.0) / work.ranks * work.size * model.beta;
}

Cost BinomialScatterCost(const CostModel& model, const CollectiveWork& work) {
  if (!IsUniform(model, work)) {
    return std::nullopt;
  }
  if (model.alpha_holds_ports || IsPowerOfTwo(work.ranks)) {
    return CeilLog2(work.ranks) * model.alpha +
           (work.ranks - 1.0) / work.ranks * work.size * model.beta;
  }
  const int rounds = FloorLog2(work.ranks);
  const int full = 1 << rounds;
  const double block = work.size / work.ranks;
  CollectiveWork rest = work;
  rest.ranks = work.ranks - full;
  rest.size = rest.ranks * block;
  return std::max(MessageTime(model, rest.size) + *BinomialScatterCost(model, rest),
                  (rest.size + (full - 1) * block) * model.beta + rounds * model.alpha);
}

Cost ChainBroadcastCost(const CostModel& model, const CollectiveWork& work) {
  if (!IsUniform(model, work)) {
    return std::nullopt;
  }
  if (work.ranks == 1) {
    return 0.0;
  }
  const double piece = work.size / work.pieces;
  const double messages = work.ranks - 2.0 + work.pieces;
  return model.alpha_holds_ports ? messages * MessageTime(model, piece)
                                 : (work.ranks - 1) * model.alpha + messages * piece * model.beta;
}

Cost HierarchicalCost(const CostModel& model, const CollectiveWork& work) {
  const bool one_class = model.ranks_per_node == 0;
  RANKLAB_CHECK(work.ranks_per_node >= 1 && work.ranks % work.ranks_per_node == 0);
  if (!one_class && model.ranks_per_node != work.ranks_per_node) {
    return std::nullopt;
  }
  const int nodes = work.ranks / work.ranks_per_node;
  const double alpha_between = one_class ? model.alpha : model.alpha_between;
  const double beta_between = one_class ? model.beta : model.beta_between;
  const double inner = work.size / work.ranks_per_node;
  const double outer = work.size / work.ranks;
  return (work.ranks_per_node - 1) * (2 * MessageTime(model, inner) + inner * model.gamma) +
         (nodes - 1) * (2 * (alpha_between + outer * beta_between) + outer * model.gamma);
}

Cost BruckAllGatherCost(const CostModel& model, const CollectiveWork& work) {
  if (!IsUniform(model, work)) {
    return std::nullopt;
  }
  const int full = 1 << FloorLog2(work.ranks);
  const int rest = work.ranks - full;
  const bool last_overlaps = !model.alpha_holds_ports && rest > 0 && 2 * rest <= full;
  const int latencies = last_overlaps ? FloorLog2(work.ranks) : CeilLog2(work.ranks);
  return latencies * model.alpha + (work.ranks - 1.0) / work.ranks * work.size * model.beta;
}

Cost BruckAllToAllCost(const CostModel& model, const CollectiveWork& work) {
  if (!IsUniform(model, work)) {
    return std::nullopt;
  }
  double sum = 0;
  for (int bit = 1; bit < work.ranks; bit *= 2) {
    int blocks = 0;
    for (int block = 0; block < work.ranks; ++block) {
      blocks += (block & bit) != 0;
    }
    sum += MessageTime(model, blocks * work.size / work.ranks);
  }
  return sum;
}

Cost PairwiseAllToAllCost(const CostModel& model, const CollectiveWork& work) {
  if (!IsUniform(model, work)) {
    return std::nullopt;
  }
  const double block = work.size / work.ranks;
  if (model.alpha_holds_ports) {
    return (work.ranks - 1) * MessageTime(model, block);
  }
  return work.ranks == 1 ? 0.0 : model.alpha + (work.ranks - 1) * block * model.beta;
}

Cost DisseminationBarrierCost(const CostModel& model, const CollectiveWork& work) {
  if (!IsUniform(model, work)) {
    return std::nullopt;
  }
  return CeilLog2(work.ranks) * model.alpha;
}

}  // namespace ranklab::fabric
