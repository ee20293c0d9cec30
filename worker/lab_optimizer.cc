#include "worker/lab_optimizer.h"

#include <variant>

namespace ranklab::worker {

compute::OptimizerSpec OptimizerOf(const experiment::LabSpec& spec) {
  const experiment::TrainSpec& train = spec.train;
  const int appliers = spec.asynchronous() ? spec.cluster.workers : 1;
  const double times = compute::RateScale(train.scale_rate, spec.GlobalBatch(), train.base_batch);
  return {.name = train.optimizer,
          .learning_rate = {.peak = train.learning_rate * times / appliers,
                            .ramp = train.ramp_steps,
                            .ramp_from = times > 1 ? 1 / times : 0,
                            .cosine = train.schedule == "cosine",
                            .total = train.steps,
                            .final_share = train.final_rate,
                            .updates_per_step = appliers},
          .momentum = train.momentum,
          .beta1 = train.beta1,
          .beta2 = train.beta2,
          .epsilon = train.epsilon,
          .weight_decay = train.weight_decay};
}

WorkerUpdate WorkerUpdateOf(const experiment::LabSpec& spec) {
  const bool on_server =
      std::holds_alternative<experiment::ParameterServerSpec>(spec.exchange.kind);
  if (on_server) {
    return {};
  }
  return {.optimizer = spec.train.optimizer, .clips = spec.train.clip_norm > 0};
}

}  // namespace ranklab::worker
