// Every algorithm by name: one line each in catalog.cc. The matrix tests, the command line and the
// lab reader take their lists from here.
#pragma once

#include <span>
#include <string_view>

#include <absl/status/statusor.h>

#include "collectives/schedule/build_options.h"
#include "collectives/schedule/schedule.h"
#include "fabric/collective_cost.h"

namespace ranklab::collectives {

// P ranks, S bytes in the whole buffer (all-to-all: of one rank), H = ceil(log2 P), L = floor(log2
// P). The texts are the row in docs/schedules.md. Where P = 2^L is meant it is said.
struct CatalogEntry {
  std::string_view name;  // "ring"
  Collective collective;
  bool pipelines;                   // chunks_per_rank makes a difference
  std::string_view steps;           // "2(P-1)"; messages that must follow each other
  std::string_view bytes_per_rank;  // sent, by the one that sends most: "2S(P-1)/P"
  std::string_view source;
  absl::StatusOr<Schedule> (*build)(const BuildOptions&);
  fabric::Cost (*cost)(const fabric::CostModel&, const fabric::CollectiveWork&);  // null: none
  bool cost_counts_pieces = false;  // it holds for chunks_per_rank > 1 too
};

std::span<const CatalogEntry> Catalog();

// Null if there is none.
const CatalogEntry* FindAlgorithm(std::string_view name, Collective collective);

// Errors: InvalidArgument, with the names that there are for `collective`; as the builder.
absl::StatusOr<Schedule> BuildNamed(std::string_view name, Collective collective,
                                    const BuildOptions& options);

// The closed form of what `entry` builds with these options, in seconds; nothing if it has none,
// also for pieces it does not count, and for a gather or scatter from or to another root than 0.
// Requires: options that it builds with; size >= 0 bytes.
fabric::Cost PredictSeconds(const CatalogEntry& entry, const fabric::CostModel& model,
                            const BuildOptions& options, double size);

}  // namespace ranklab::collectives
