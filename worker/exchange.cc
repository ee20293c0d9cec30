#include "worker/exchange.h"

#include <variant>

#include "core/overloaded.h"
#include "core/status.h"

namespace ranklab::worker {

absl::StatusOr<std::unique_ptr<GradientExchange>> MakeExchange(const ExchangeDeps& deps,
                                                               const ExchangeOptions& options) {
  using Made = absl::StatusOr<std::unique_ptr<GradientExchange>>;
  return std::visit(
      Overloaded{
          [](const experiment::NoExchange&) -> Made { return MakeNoExchange(); },
          [&](const experiment::CollectiveSpec&) { return MakeCollectiveExchange(deps, options); },
          [&](const experiment::ParameterServerSpec&) {
            return MakeParameterServerExchange(deps, options);
          },
          [](const experiment::NcclSpec&) -> Made {
            return Unimplemented(
                "exchange.kind nccl needs a CUDA device and a build with NCCL; this one has "
                "neither. "
                "Use {kind: collective, algorithm: ring}");
          },
      },
      options.spec.kind);
}

}  // namespace ranklab::worker
