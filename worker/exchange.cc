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
  const bool by_server = std::holds_alternative<experiment::ParameterServerSpec>(options.spec.kind);
  ASSIGN_OR_RETURN(HostCopies made, HostCopies::Make(deps.model, options.wire, by_server));
  auto copies = std::make_unique<const HostCopies>(std::move(made));
  ExchangeDeps with_copies = deps;
  with_copies.copies = copies->needed() ? copies.get() : nullptr;
  ASSIGN_OR_RETURN(auto machine, MakeExchangeMachine(with_copies, options));
  ASSIGN_OR_RETURN(WireGradients wire, WireGradients::Make(deps.model, options.wire));
  return MakeBlocking(deps.loop, options.spec.overlap, std::move(machine),
                      {.wire = std::move(wire), .copies = std::move(copies)});
}

}  // namespace ranklab::worker
