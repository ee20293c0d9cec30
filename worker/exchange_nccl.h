// All-reduce of each bucket by NCCL, on its own queue of the GPU.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <absl/functional/any_invocable.h>
#include <absl/status/statusor.h>

#include "collectives/nccl/api.h"
#include "collectives/nccl/patience.h"
#include "collectives/nccl/queues.h"
#include "worker/exchange.h"
#include "worker/gradient_exchange.h"

namespace ranklab::worker {

// Brings `mine` to the other workers of the generation, by way of the coordinator; returns what
// every worker brought, [rank]. At most 1 KiB.
using ShareFn = absl::AnyInvocable<absl::StatusOr<std::vector<std::string>>(const std::string&)>;

// What the exchange needs of a process with a GPU. All must outlive it.
struct NcclDeps {
  collectives::nccl::Queues* queues = nullptr;  // null: the worker's device is no GPU
  collectives::nccl::Patience& patience;        // ends with the generation
  ShareFn share;
};

// For a training thread. All workers of the generation at once.
// Errors: Unimplemented, this worker's device is no GPU, or this build or machine has no NCCL;
// InvalidArgument, two ranks on one GPU, by name, unless the cluster shares it, or more than
// kMostOnOneGpu then; those of nccl::Communicator::Make and of `share`.
absl::StatusOr<std::unique_ptr<GradientExchange>> MakeNcclExchange(const ExchangeDeps& deps,
                                                                   NcclDeps nccl,
                                                                   const ExchangeOptions& options);

// The same with another NCCL than this machine's.
absl::StatusOr<std::unique_ptr<GradientExchange>> MakeNcclExchange(
    const ExchangeDeps& deps, NcclDeps nccl, const ExchangeOptions& options,
    std::unique_ptr<collectives::nccl::Api> api);

}  // namespace ranklab::worker
