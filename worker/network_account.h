// Holds one endpoint's shaped network to its word: what it measured against the modelled port, what
// arrived against what the exchange's arithmetic says.
#pragma once

#include <span>

#include <absl/status/statusor.h>

#include "experiment/lab_spec.h"
#include "fabric/held_to_account.h"
#include "worker/buckets.h"
#include "worker/network.h"

namespace ranklab::worker {

// Body bytes that a worker receives in `steps` steps and the final fetch. Collectives: the chunks
// of its schedule's receives, bucket by bucket. Parameter server: the whole model a step.
// Errors: InvalidArgument, an algorithm that the catalog does not know.
absl::StatusOr<Bytes> ClaimedByWorker(const experiment::LabSpec& spec, Rank rank,
                                      std::span<const Bucket> buckets, Step steps);

// That a server of `elements` elements receives: its range from each worker whose step it applied.
Bytes ClaimedByServer(const experiment::LabSpec& spec, std::int64_t elements, std::int64_t updates);

// True for a modelled fabric whose links the lab leaves alone: only then is there something to hold
// the network to.
bool IsHeldToAccount(const experiment::LabSpec& spec);

fabric::NetworkVerdict Judge(const fabric::LinkSpec& port, Bytes claimed,
                             const Network::Report& report);

}  // namespace ranklab::worker
