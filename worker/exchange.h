// The exchanges there are: one file each, one line in exchange.cc.
#pragma once

#include <cstdint>
#include <memory>

#include <absl/status/statusor.h>

#include "compute/reducer.h"
#include "core/event_loop.h"
#include "core/trace.h"
#include "experiment/lab_spec.h"
#include "transport/messenger.h"
#include "transport/wire.h"
#include "worker/exchange_machine.h"
#include "worker/gradient_exchange.h"
#include "worker/host_copies.h"
#include "worker/model.h"

namespace ranklab::worker {

// What an exchange needs from outside; all must outlive it.
struct ExchangeDeps {
  EventLoop& loop;
  transport::Messenger& messenger;
  TraceSink& trace;
  compute::Reducer& reducer;
  Model& model;
  const HostCopies* copies = nullptr;  // where the model's memory is a device's
};

struct NcclDeps;  // exchange_nccl.h

struct ExchangeOptions {
  experiment::ExchangeSpec spec{};
  compute::DType wire = compute::DType::kFloat32;  // of gradients
  std::uint32_t generation = 0;
  Rank rank = 0;
  int workers = 1;
  int servers = 0;
  bool shared_gpu = false;  // cluster.shared_gpu
  Nanos timeout{};          // of one step's exchange, wall time
  bool replicated = false;  // servers' shards: a lost server is replaced
};

// For a training thread. Errors: InvalidArgument, an algorithm that the catalog does not know;
// those of MakeNcclExchange.
absl::StatusOr<std::unique_ptr<GradientExchange>> MakeExchange(const ExchangeDeps& deps,
                                                               NcclDeps nccl,
                                                               const ExchangeOptions& options);

// The same for the loop itself. Errors: Unimplemented, nccl: what a GPU does is not the loop's.
absl::StatusOr<std::unique_ptr<ExchangeMachine>> MakeExchangeMachine(
    const ExchangeDeps& deps, const ExchangeOptions& options);

std::unique_ptr<GradientExchange> MakeNoExchange();
std::unique_ptr<ExchangeMachine> MakeNoExchangeMachine();
absl::StatusOr<std::unique_ptr<ExchangeMachine>> MakeCollectiveExchange(
    const ExchangeDeps& deps, const ExchangeOptions& options);
absl::StatusOr<std::unique_ptr<ExchangeMachine>> MakeParameterServerExchange(
    const ExchangeDeps& deps, const ExchangeOptions& options);

}  // namespace ranklab::worker
