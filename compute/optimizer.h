#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "compute/tensor.h"
#include "fabric/device_model.h"

namespace ranklab::compute {

// Turns gradients into an update of the parameters. Runs on a worker (collectives) or on a server's
// shard (parameter server); the state (momentum) covers the range it is given.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // parameters and gradients: shape (n), the n of the first call ever after. `scale` multiplies the
  // gradients: 1 / sum of weights, because what is exchanged are sums over samples or tokens.
  // Errors: ResourceExhausted, no room for the state, at the first call.
  virtual absl::Status Apply(TensorView parameters, TensorView gradients, double scale) = 0;

  // Named state tensors ("momentum"), for TrainState. Empty before the first Apply.
  virtual std::vector<std::pair<std::string, TensorView>> State() = 0;
};

struct OptimizerSpec {
  std::string name = "sgd";  // "sgd", "momentum"
  double learning_rate = 0.0;
  double momentum = 0.0;
};

// sgd: p -= lr g. momentum: v = m v + g, p -= lr v, with v = 0 at first, which is PyTorch's
// torch.optim.SGD without dampening and not the form that multiplies g by lr before it enters v.
// Source: Sutskever et al., "On the importance of initialization and momentum in deep learning",
// ICML 2013, and the note on it in PyTorch's documentation of SGD.
// Lifetime: `device` outlives the optimizer.
// Errors: InvalidArgument, an unknown name, with those that there are.
absl::StatusOr<std::unique_ptr<Optimizer>> MakeOptimizer(const OptimizerSpec& spec, Device& device);

// Of one Apply on n elements: one fused pass. Requires: a name that MakeOptimizer knows.
fabric::Operation CostOfOptimizer(std::string_view name, std::int64_t n);

}  // namespace ranklab::compute
