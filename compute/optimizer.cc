#include "compute/optimizer.h"

#include <algorithm>
#include <cmath>

#include "compute/operations.h"
#include "core/check.h"
#include "core/status.h"

namespace ranklab::compute {
namespace {

// Counts updates, and keeps tensors as long as the parameters, zero at first.
class CountingOptimizer : public Optimizer {
 public:
  CountingOptimizer(const OptimizerSpec& spec, Device& device, std::vector<std::string> state)
      : spec_(spec), device_(device), names_(std::move(state)) {}

  absl::Status Apply(TensorView parameters, TensorView gradients, double scale) final {
    const std::int64_t count = parameters.element_count();
    if (updates_ == 0) {
      RETURN_IF_ERROR(MakeState(count));
    }
    RANKLAB_CHECK(count == count_, "%d elements after %d", count, count_);
    const auto rate = static_cast<float>(spec_.learning_rate.At(updates_));
    RETURN_IF_ERROR(Update(parameters, gradients, static_cast<float>(scale), rate));
    ++updates_;
    return absl::OkStatus();
  }

  std::vector<std::pair<std::string, TensorView>> State() final {
    std::vector<std::pair<std::string, TensorView>> state;
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      state.emplace_back(names_[i], StateAt(i, &device_));
    }
    return state;
  }

 protected:
  std::int64_t updates() const { return updates_; }  // that were applied

  // `rate`: of this update, which is number updates() + 1.
  virtual absl::Status Update(const TensorView& parameters, const TensorView& gradients,
                              float scale, float rate) = 0;

  // Where the parameters lie decides who computes: a server's shard may be plain host memory.
  TensorView StateAt(std::size_t i, Device* device) const {
    TensorView view = ViewOf(*buffers_[i], DType::kFloat32, {count_, 1, 1, 1});
    view.device = device;
    return view;
  }

  const OptimizerSpec spec_;

 private:
  absl::Status MakeState(std::int64_t count) {
    count_ = count;
    buffers_.clear();
    for (std::size_t i = 0; i < names_.size(); ++i) {
      ASSIGN_OR_RETURN(auto buffer,
                       device_.Allocate(count * SizeOf(DType::kFloat32), MemoryKind::kOptimizer));
      buffers_.push_back(std::move(buffer));
      RETURN_IF_ERROR(FillZero(StateAt(i, &device_)));
    }
    return absl::OkStatus();
  }

  Device& device_;
  const std::vector<std::string> names_;
  std::vector<std::unique_ptr<Buffer>> buffers_;  // [name]
  std::int64_t count_ = 0;
  std::int64_t updates_ = 0;
};

class Sgd final : public CountingOptimizer {
 public:
  Sgd(const OptimizerSpec& spec, Device& device) : CountingOptimizer(spec, device, {}) {}

 private:
  absl::Status Update(const TensorView& parameters, const TensorView& gradients, float scale,
                      float rate) override {
    return SgdUpdate(parameters, gradients, scale, rate);
  }
};

class Momentum final : public CountingOptimizer {
 public:
  Momentum(const OptimizerSpec& spec, Device& device)
      : CountingOptimizer(spec, device, {"momentum"}) {}

 private:
  absl::Status Update(const TensorView& parameters, const TensorView& gradients, float scale,
                      float rate) override {
    return MomentumUpdate(parameters, gradients, StateAt(0, parameters.device), scale, rate,
                          static_cast<float>(spec_.momentum));
  }
};

class AdamW final : public CountingOptimizer {
 public:
  AdamW(const OptimizerSpec& spec, Device& device)
      : CountingOptimizer(spec, device, {"momentum", "variance"}) {}

 private:
  absl::Status Update(const TensorView& parameters, const TensorView& gradients, float scale,
                      float rate) override {
    const auto update = static_cast<double>(updates() + 1);
    const auto correction = [update](double beta) {
      return static_cast<float>(1.0 - std::pow(beta, update));
    };
    return AdamWUpdate(parameters, gradients, StateAt(0, parameters.device),
                       StateAt(1, parameters.device), scale,
                       {.beta1 = static_cast<float>(spec_.beta1),
                        .beta2 = static_cast<float>(spec_.beta2),
                        .epsilon = static_cast<float>(spec_.epsilon),
                        .rest1 = static_cast<float>(1.0 - spec_.beta1),
                        .rest2 = static_cast<float>(1.0 - spec_.beta2),
                        .rate = rate,
                        .decay = static_cast<float>(rate * spec_.weight_decay),
                        .correction1 = correction(spec_.beta1),
                        .correction2 = correction(spec_.beta2)});
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Optimizer>> MakeOptimizer(const OptimizerSpec& spec,
                                                         Device& device) {
  if (spec.name == "sgd") {
    return std::make_unique<Sgd>(spec, device);
  }
  if (spec.name == "momentum") {
    return std::make_unique<Momentum>(spec, device);
  }
  if (spec.name == "adamw") {
    return std::make_unique<AdamW>(spec, device);
  }
  return InvalidArgument("optimizer is \"%s\"; one of sgd, momentum, adamw", spec.name);
}

fabric::Operation CostOfOptimizer(std::string_view name, std::int64_t n) {
  if (name == "sgd") {
    return CostOfElementwise(n, /*reads=*/2, /*writes=*/1);
  }
  if (name == "momentum") {
    return CostOfElementwise(n, /*reads=*/3, /*writes=*/2);
  }
  RANKLAB_CHECK(name == "adamw", "optimizer \"%s\"", name);
  return CostOfElementwise(n, /*reads=*/4, /*writes=*/3);
}

absl::StatusOr<double> ClipFactor(const TensorView& gradients, double scale, double limit) {
  ASSIGN_OR_RETURN(const double squares, SumOfSquares(gradients));
  constexpr double kTiny = 1e-6;
  return std::min(1.0, limit / (scale * std::sqrt(squares) + kTiny));
}

fabric::Operation CostOfClipFactor(std::int64_t n) {
  return CostOfElementwise(n, /*reads=*/1, /*writes=*/0);
}

}  // namespace ranklab::compute
