#include "worker/exchange.h"

#include <utility>
#include <variant>

#include "core/overloaded.h"
#include "core/status.h"
#include "worker/blocking_exchange.h"
#include "worker/exchange_nccl.h"

namespace ranklab::worker {

absl::StatusOr<std::unique_ptr<ExchangeMachine>> MakeExchangeMachine(
    const ExchangeDeps& deps, const ExchangeOptions& options) {
  using Made = absl::StatusOr<std::unique_ptr<ExchangeMachine>>;
  return std::visit(
      Overloaded{
          [](const experiment::NoExchange&) -> Made { return MakeNoExchangeMachine(); },
          [&](const experiment::CollectiveSpec&) { return MakeCollectiveExchange(deps, options); },
          [&](const experiment::ParameterServerSpec&) {
            return MakeParameterServerExchange(deps, options);
          },
          [](const experiment::NcclSpec&) -> Made {
            return Unimplemented("exchange.kind nccl needs a GPU, which a loop does not drive");
          },
      },
      options.spec.kind);
}

absl::StatusOr<std::unique_ptr<GradientExchange>> MakeExchange(const ExchangeDeps& deps,
                                                               NcclDeps nccl,
                                                               const ExchangeOptions& options) {
  if (std::holds_alternative<experiment::NcclSpec>(options.spec.kind)) {
    return MakeNcclExchange(deps, std::move(nccl), options);
  }
  if (std::holds_alternative<experiment::NoExchange>(options.spec.kind)) {
    return MakeNoExchange();
  }
  ASSIGN_OR_RETURN(auto machine, MakeExchangeMachine(deps, options));
  ASSIGN_OR_RETURN(WireGradients wire, WireGradients::Make(deps.model, options.wire));
  return MakeBlocking(deps.loop, options.spec.overlap, std::move(machine), std::move(wire));
}

}  // namespace ranklab::worker
