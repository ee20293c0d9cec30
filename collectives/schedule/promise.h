// What each collective promises, as data: which contribution a chunk holds before, and what it must
// hold afterwards.
//
//   collective       contributes                promised, in place           out of place: output
//   all-reduce       all chunks                 all, of all ranks            as many chunks
//   reduce-scatter   all chunks                 block r, of all ranks        input / P
//   all-gather       block r                    all, block i of rank i       P x input
//   broadcast        the root: all              all, of the root             as many
//   reduce           all chunks                 at the root: of all ranks    as many
//   gather           block r                    at the root: as all-gather   P x input
//   scatter          the root: all              block r, of the root         input / P
//   all-to-all(-v)   all, block j for rank j    block i, of rank i           as many
//   barrier          all chunks                 all, known of all ranks      none
#pragma once

#include <cstdint>
#include <optional>

#include <absl/status/status.h>

#include "collectives/schedule/schedule.h"

namespace ranklab::collectives {

// A place in the whole of what the collective works on, counted in chunks. Only contributions to
// one position may be reduced with each other.
using Position = std::int64_t;

// How the chunks of input and output relate; in place there is one buffer, as large as the larger.
enum class Shape : std::uint8_t { kWhole, kShrinks, kGrows, kExchanges };
Shape ShapeOf(Collective collective);

struct Result {
  Position position = 0;
  std::optional<Rank> contributor;  // none: the reduction over all ranks
};

// Errors: FailedPrecondition, chunk counts that do not fit the collective, a root outside, or an
// all-to-all-v with scratch: scratch is cut evenly, its blocks are as the call says.
absl::Status CheckShape(const Schedule& schedule);

// The position that `rank` contributes to with the first contents of `chunk`; none for memory whose
// contents mean nothing. Requires: CheckShape is Ok.
std::optional<Position> ContributionOf(const Schedule& schedule, Rank rank, std::int32_t chunk);

// What `chunk` of `rank` must hold in the end; none if nothing is promised. Requires: as above.
std::optional<Result> PromiseOf(const Schedule& schedule, Rank rank, std::int32_t chunk);

}  // namespace ranklab::collectives
