#include "collectives/schedule/catalog.h"

#include <string>

#include "collectives/schedule/ring.h"
#include "core/status.h"

namespace ranklab::collectives {
namespace {

template <absl::StatusOr<Schedule> (*Build)(const RingOptions&)>
absl::StatusOr<Schedule> Ring(const CatalogOptions& options) {
  return Build({.group_size = options.group_size, .chunks_per_rank = options.chunks_per_rank});
}

constexpr std::string_view kPatarasuk = "Patarasuk and Yuan, JPDC 69(2), 2009";

constexpr CatalogEntry kCatalog[] = {
    {"ring", Collective::kAllReduce, "2(P-1)", "2S(P-1)/P", kPatarasuk, Ring<BuildRingAllReduce>},
    {"ring", Collective::kReduceScatter, "P-1", "S(P-1)/P", kPatarasuk,
     Ring<BuildRingReduceScatter>},
    {"ring", Collective::kAllGather, "P-1", "S(P-1)/P", kPatarasuk, Ring<BuildRingAllGather>},
};

}  // namespace

std::span<const CatalogEntry> Catalog() { return kCatalog; }

absl::StatusOr<Schedule> BuildNamed(std::string_view name, Collective collective,
                                    const CatalogOptions& options) {
  std::string known;
  for (const CatalogEntry& entry : Catalog()) {
    if (entry.collective != collective) {
      continue;
    }
    if (entry.name == name) {
      return entry.build(options);
    }
    known += absl::StrFormat("%s%s", known.empty() ? "" : ", ", entry.name);
  }
  return InvalidArgument("no %s algorithm is called \"%s\"; one of: %s", NameOf(collective), name,
                         known.empty() ? "none" : known);
}

}  // namespace ranklab::collectives
