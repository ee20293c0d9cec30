#include "experiment/survival.h"

#include <variant>

namespace ranklab::experiment {

bool Replicates(const LabSpec& spec) {
  return std::holds_alternative<ParameterServerSpec>(spec.exchange.kind) &&
         spec.cluster.on_loss == "continue" && spec.cluster.servers > 1;
}

}  // namespace ranklab::experiment
