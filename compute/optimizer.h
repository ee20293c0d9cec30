#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "compute/tensor.h"

namespace ranklab::compute {

// Turns gradients into an update of the parameters. Runs on a worker (collectives) or on a server's
// shard (parameter server); the state (momentum, Adam's moments) covers the range it is given.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // parameters and gradients: shape (n), the n of the first call ever after. `scale` multiplies the
  // gradients: 1 / sum of weights, because what is exchanged are sums over samples or tokens.
  virtual absl::Status Apply(TensorView parameters, TensorView gradients, double scale) = 0;

  // Named state tensors (momentum), for TrainState. Empty before the first Apply.
  virtual std::vector<std::pair<std::string, TensorView>> State() = 0;
};

struct OptimizerSpec {
  std::string name = "sgd";  // "sgd", "momentum"
  double learning_rate = 0.0;
  double momentum = 0.0;
};

// Errors: InvalidArgument, an unknown name, with those that there are.
absl::StatusOr<std::unique_ptr<Optimizer>> MakeOptimizer(const OptimizerSpec& spec, Device& device);

}  // namespace ranklab::compute
