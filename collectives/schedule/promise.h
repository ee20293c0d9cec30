// What each collective promises, as data: which contribution a chunk holds before, and what it must
// hold afterwards.
#pragma once

#include <optional>

#include <absl/status/status.h>

#include "collectives/schedule/schedule.h"

namespace ranklab::collectives {

// A place in the whole vector that the collective works on, counted in chunks. Only contributions
// to one position may be reduced with each other.
using Position = std::int32_t;

struct Result {
  Position position = 0;
  std::optional<Rank> contributor;  // none: the reduction over all ranks
};

// Errors: FailedPrecondition, chunk counts that do not fit the collective; Unimplemented, a
// collective that has no promise here.
absl::Status CheckShape(const Schedule& schedule);

// The position that `rank` contributes to with the first contents of `chunk`; none for memory whose
// contents mean nothing. Requires: CheckShape is Ok.
std::optional<Position> ContributionOf(const Schedule& schedule, Rank rank, std::int32_t chunk);

// What `chunk` of `rank` must hold in the end; none if nothing is promised. Requires: as above.
std::optional<Result> PromiseOf(const Schedule& schedule, Rank rank, std::int32_t chunk);

}  // namespace ranklab::collectives
