// Every algorithm by name: one line each in catalog.cc. The matrix tests, the command line and the
// lab reader take their lists from here.
#pragma once

#include <span>
#include <string_view>

#include <absl/status/statusor.h>

#include "collectives/schedule/schedule.h"

namespace ranklab::collectives {

struct CatalogOptions {
  int group_size = 0;
  int chunks_per_rank = 1;
};

// P ranks, S bytes in the whole buffer. Steps are messages that must follow each other at
// chunks_per_rank = 1.
struct CatalogEntry {
  std::string_view name;  // "ring"
  Collective collective;
  std::string_view steps;           // "2(P-1)"
  std::string_view bytes_per_rank;  // sent by each: "2S(P-1)/P"
  std::string_view source;
  absl::StatusOr<Schedule> (*build)(const CatalogOptions&);
};

std::span<const CatalogEntry> Catalog();

// Errors: InvalidArgument, with the names that there are for `collective`; as the builder.
absl::StatusOr<Schedule> BuildNamed(std::string_view name, Collective collective,
                                    const CatalogOptions& options);

}  // namespace ranklab::collectives
