#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "compute/learning_rate.h"
#include "compute/tensor.h"
#include "fabric/device_model.h"

namespace ranklab::compute {

// Turns gradients into an update of the parameters. Runs on a worker (collectives) or on a server's
// shard (parameter server); the state covers the range it is given. It counts its updates, so that
// schedule and bias correction stand still in a step that is skipped.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // parameters and gradients: shape (n), the n of the first call ever after. `scale` multiplies the
  // gradients: 1 / sum of weights, because what is exchanged are sums over samples or tokens.
  // Errors: ResourceExhausted, no room for the state, at the first call.
  virtual absl::Status Apply(TensorView parameters, TensorView gradients, double scale) = 0;

  // Named state tensors ("momentum", "variance"). Empty before the first Apply.
  virtual std::vector<std::pair<std::string, TensorView>> State() = 0;
};

struct OptimizerSpec {
  std::string name = "sgd";  // "sgd", "momentum", "adamw"
  LearningRate learning_rate{};
  double momentum = 0.0;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  // adamw
  double weight_decay = 0.0;                          // adamw; of every parameter
};

// sgd: p -= lr g. momentum: v = m v + g, p -= lr v, with v = 0 at first, which is PyTorch's
// torch.optim.SGD without dampening and not the form that multiplies g by lr before it enters v.
// Source: Sutskever et al., "On the importance of initialization and momentum in deep learning",
// ICML 2013, and the note on it in PyTorch's documentation of SGD.
// adamw: AdamWUpdate of operations.h, as torch.optim.AdamW.
// Lifetime: `device` outlives the optimizer.
// Errors: InvalidArgument, an unknown name, with those that there are.
absl::StatusOr<std::unique_ptr<Optimizer>> MakeOptimizer(const OptimizerSpec& spec, Device& device);

// Of one Apply on n elements: one fused pass. Requires: a name that MakeOptimizer knows.
fabric::Operation CostOfOptimizer(std::string_view name, std::int64_t n);

// What `scale` has to be multiplied by so that scale x gradients has a Euclidean norm of at most
// `limit`: min(1, limit / (norm + 1e-6)). Waits for the device. Source: Pascanu, Mikolov and
// Bengio, "On the difficulty of training recurrent neural networks", ICML 2013; as PyTorch's
// clip_grad_norm_. Needs every gradient, and so has no place on a server, which holds a part.
absl::StatusOr<double> ClipFactor(const TensorView& gradients, double scale, double limit);

// Of one ClipFactor of n gradients: a pass that reads them and leaves one number.
fabric::Operation CostOfClipFactor(std::int64_t n);

}  // namespace ranklab::compute
