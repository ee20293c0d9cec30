#include "collectives/schedule/catalog.h"

#include <string>

#include "collectives/schedule/bidirectional_ring.h"
#include "collectives/schedule/binomial.h"
#include "collectives/schedule/bruck.h"
#include "collectives/schedule/chain.h"
#include "collectives/schedule/dissemination.h"
#include "collectives/schedule/double_binary_tree.h"
#include "collectives/schedule/hierarchical.h"
#include "collectives/schedule/multi_channel_ring.h"
#include "collectives/schedule/pairwise.h"
#include "collectives/schedule/rabenseifner.h"
#include "collectives/schedule/recursive_doubling.h"
#include "collectives/schedule/recursive_halving.h"
#include "collectives/schedule/ring.h"
#include "core/status.h"

namespace ranklab::collectives {
namespace {

constexpr std::string_view kPatarasuk = "Patarasuk and Yuan, JPDC 69(2), 2009";
constexpr std::string_view kThakur = "Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005";
constexpr std::string_view kBruck = "Bruck et al., IEEE TPDS 8(11), 1997";

// The first of a collective is the default where a name does not know it.
// clang-format off
constexpr CatalogEntry kCatalog[] = {
    {"ring", Collective::kAllReduce, true, "2(P-1)", "2S(P-1)/P", kPatarasuk,
     BuildRingAllReduce, fabric::RingAllReduceCost},
    {"bidirectional_ring", Collective::kAllReduce, true, "2(P-1)", "2S(P-1)/P",
     "Jain et al., ICS 2010", BuildBidirectionalRing, fabric::BidirectionalRingCost},
    {"multi_channel_ring", Collective::kAllReduce, true, "2(P-1)", "2S(P-1)/P",
     "NVIDIA NCCL, src/graph/rings.cc", BuildMultiChannelRing, fabric::MultiChannelRingCost},
    {"recursive_doubling", Collective::kAllReduce, true, "L for P = 2^L, else L+2",
     "L S for P = 2^L, else (L+1) S", kThakur,
     BuildRecursiveDoubling, fabric::RecursiveDoublingCost},
    {"rabenseifner", Collective::kAllReduce, true, "2L for P = 2^L, else 2L+3",
     "2S(P-1)/P for P = 2^L", "Rabenseifner, ICCS 2004",
     BuildRabenseifner, fabric::RabenseifnerCost},
    {"binomial", Collective::kAllReduce, true, "2H", "H S", kThakur,
     BuildBinomialAllReduce, fabric::BinomialAllReduceCost},
    {"double_binary_tree", Collective::kAllReduce, true, "2H", "2S",
     "Sanders, Speck and Traeff, Parallel Computing 35(12), 2009", BuildDoubleBinaryTree, nullptr},
    {"hierarchical", Collective::kAllReduce, true, "2(M-1) + 2(N-1)", "2S(M-1)/M + 2S(N-1)/P",
     "Jia et al., arXiv:1807.11205, 2018", BuildHierarchical, fabric::HierarchicalCost},
    {"ring", Collective::kReduceScatter, true, "P-1", "S(P-1)/P", kPatarasuk,
     BuildRingReduceScatter, fabric::RingReduceScatterCost},
    {"recursive", Collective::kReduceScatter, false, "L for P = 2^L, else L+2",
     "S(P-1)/P for P = 2^L", kThakur,
     BuildRecursiveReduceScatter, fabric::RecursiveReduceScatterCost},
    {"ring", Collective::kAllGather, true, "P-1", "S(P-1)/P", kPatarasuk,
     BuildRingAllGather, fabric::RingAllGatherCost},
    {"recursive", Collective::kAllGather, false, "L for P = 2^L, else L+2",
     "S(P-1)/P for P = 2^L", kThakur, BuildRecursiveAllGather, fabric::RecursiveAllGatherCost},
    {"bruck", Collective::kAllGather, false, "H", "S(P-1)/P", kBruck,
     BuildBruckAllGather, fabric::BruckAllGatherCost},
    {"binomial", Collective::kBroadcast, true, "H", "H S", kThakur,
     BuildBinomialBroadcast, fabric::BinomialBroadcastCost},
    {"chain", Collective::kBroadcast, true, "2P-2", "S",
     "Sanders and Sibeyn, IPL 86(1), 2003", BuildChainBroadcast, fabric::ChainBroadcastCost,
     /*cost_counts_pieces=*/true},
    {"binomial", Collective::kReduce, true, "H", "S", kThakur,
     BuildBinomialReduce, fabric::BinomialReduceCost},
    {"binomial", Collective::kGather, false, "H", "S/2 for P = 2^L", kThakur,
     BuildBinomialGather, fabric::BinomialGatherCost},
    {"binomial", Collective::kScatter, false, "H", "S(P-1)/P", kThakur,
     BuildBinomialScatter, fabric::BinomialScatterCost},
    {"pairwise", Collective::kAllToAll, false, "P-1", "S(P-1)/P", kThakur,
     BuildPairwiseAllToAll, fabric::PairwiseAllToAllCost},
    {"bruck", Collective::kAllToAll, false, "H", "H S/2 for P = 2^L", kBruck,
     BuildBruckAllToAll, fabric::BruckAllToAllCost},
    {"pairwise", Collective::kAllToAllV, false, "P-1", "S less its own block", kThakur,
     BuildPairwiseAllToAllV, nullptr},
    {"dissemination", Collective::kBarrier, false, "H", "0",
     "Hensgen, Finkel and Manber, IJPP 17(1), 1988",
     BuildDisseminationBarrier, fabric::DisseminationBarrierCost},
};
// clang-format on

}  // namespace

std::span<const CatalogEntry> Catalog() { return kCatalog; }

const CatalogEntry* FindAlgorithm(std::string_view name, Collective collective) {
  for (const CatalogEntry& entry : Catalog()) {
    if (entry.collective == collective && entry.name == name) {
      return &entry;
    }
  }
  return nullptr;
}

absl::StatusOr<Schedule> BuildNamed(std::string_view name, Collective collective,
                                    const BuildOptions& options) {
  if (const CatalogEntry* entry = FindAlgorithm(name, collective)) {
    return entry->build(options);
  }
  std::string known;
  for (const CatalogEntry& entry : Catalog()) {
    if (entry.collective == collective) {
      known += absl::StrFormat("%s%s", known.empty() ? "" : ", ", entry.name);
    }
  }
  return InvalidArgument("no %s algorithm is called \"%s\"; one of: %s", NameOf(collective), name,
                         known);
}

fabric::Cost PredictSeconds(const CatalogEntry& entry, const fabric::CostModel& model,
                            const BuildOptions& options, double size) {
  const bool in_pieces = entry.pipelines && options.chunks_per_rank > 1;
  // From another root the blocks of some subtrees wrap around and take two messages.
  const bool may_wrap = options.root != 0 && (entry.collective == Collective::kGather ||
                                              entry.collective == Collective::kScatter);
  if (entry.cost == nullptr || (in_pieces && !entry.cost_counts_pieces) || may_wrap) {
    return std::nullopt;
  }
  return entry.cost(model, {.ranks = options.group_size,
                            .size = size,
                            .pieces = options.group_size * options.chunks_per_rank,
                            .channels = options.channels,
                            .ranks_per_node = RanksPerNode(options)});
}

}  // namespace ranklab::collectives
