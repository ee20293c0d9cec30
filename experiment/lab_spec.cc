#include "experiment/lab_spec.h"

#include <absl/strings/str_format.h>

#include "core/check.h"
#include "core/overloaded.h"

namespace ranklab::experiment {

std::string DataSpec::Key() const {
  return absl::StrFormat("%s|%s|%s|%s|%s|%d|%d|%d|%d|%d|%d|%s|%d|%d", kind, images, labels,
                         test_images, test_labels, samples, inputs, classes, vocabulary, branching,
                         shortest, file, context, split_seed);
}

int LabSpec::GlobalBatch() const {
  RANKLAB_CHECK(cluster.workers > 0, "the number of workers is not resolved yet");
  return train.global_batch > 0 ? train.global_batch : train.batch_per_worker * cluster.workers;
}

int LabSpec::BatchOf(Rank rank) const {
  RANKLAB_CHECK(rank >= 0 && rank < cluster.workers, "rank %d of %d", rank, cluster.workers);
  if (train.global_batch == 0) {
    return train.batch_per_worker;
  }
  const int remainder = train.global_batch % cluster.workers;
  return train.global_batch / cluster.workers + (rank < remainder ? 1 : 0);
}

bool LabSpec::asynchronous() const {
  const auto* ps = std::get_if<ParameterServerSpec>(&exchange.kind);
  return ps != nullptr && ps->staleness_bound > 0;
}

std::string LabSpec::ExchangeName() const {
  return std::visit(
      Overloaded{[](const NoExchange&) -> std::string { return "none"; },
                 [](const NcclSpec&) -> std::string { return "nccl"; },
                 [](const CollectiveSpec& collective) { return collective.algorithm; },
                 [](const ParameterServerSpec& ps) -> std::string {
                   if (ps.staleness_bound == ParameterServerSpec::kUnbounded) {
                     return "ps async";
                   }
                   if (ps.staleness_bound > 0) {
                     return "ps staleness " + std::to_string(ps.staleness_bound);
                   }
                   return "ps";
                 }},
      exchange.kind);
}

std::string LabSpec::Transport() const {
  if (exchange.transport != "auto") {
    return exchange.transport;
  }
  return std::holds_alternative<ParameterServerSpec>(exchange.kind) ? "grpc" : "tcp";
}

}  // namespace ranklab::experiment
