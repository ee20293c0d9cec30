#include "compute/optimizer.h"

#include "compute/operations.h"
#include "core/check.h"
#include "core/status.h"

namespace ranklab::compute {
namespace {

class Sgd final : public Optimizer {
 public:
  explicit Sgd(const OptimizerSpec& spec)
      : learning_rate_(static_cast<float>(spec.learning_rate)) {}

  absl::Status Apply(TensorView parameters, TensorView gradients, double scale) override {
    return SgdUpdate(parameters, gradients, static_cast<float>(scale), learning_rate_);
  }

  std::vector<std::pair<std::string, TensorView>> State() override { return {}; }

 private:
  float learning_rate_;
};

class Momentum final : public Optimizer {
 public:
  Momentum(const OptimizerSpec& spec, Device& device)
      : device_(device),
        learning_rate_(static_cast<float>(spec.learning_rate)),
        momentum_(static_cast<float>(spec.momentum)) {}

  absl::Status Apply(TensorView parameters, TensorView gradients, double scale) override {
    const std::int64_t count = parameters.element_count();
    if (velocity_ == nullptr) {
      ASSIGN_OR_RETURN(velocity_,
                       device_.Allocate(parameters.byte_count(), MemoryKind::kOptimizer));
      count_ = count;
      RETURN_IF_ERROR(FillZero(velocity()));
    }
    RANKLAB_CHECK(count == count_, "%d elements after %d", count, count_);
    // Where the parameters lie decides who computes: a server's shard may be plain host memory.
    TensorView state = velocity();
    state.device = parameters.device;
    return MomentumUpdate(parameters, gradients, state, static_cast<float>(scale), learning_rate_,
                          momentum_);
  }

  std::vector<std::pair<std::string, TensorView>> State() override {
    if (velocity_ == nullptr) {
      return {};
    }
    return {{"momentum", velocity()}};
  }

 private:
  TensorView velocity() { return ViewOf(*velocity_, DType::kFloat32, {count_, 1, 1, 1}); }

  Device& device_;
  float learning_rate_;
  float momentum_;
  std::unique_ptr<Buffer> velocity_;
  std::int64_t count_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Optimizer>> MakeOptimizer(const OptimizerSpec& spec,
                                                         Device& device) {
  if (spec.name == "sgd") {
    return std::make_unique<Sgd>(spec);
  }
  if (spec.name == "momentum") {
    return std::make_unique<Momentum>(spec, device);
  }
  return InvalidArgument("optimizer is \"%s\"; one of sgd, momentum", spec.name);
}

fabric::Operation CostOfOptimizer(std::string_view name, std::int64_t n) {
  if (name == "sgd") {
    return CostOfElementwise(n, /*reads=*/2, /*writes=*/1);
  }
  RANKLAB_CHECK(name == "momentum", "optimizer \"%s\"", name);
  return CostOfElementwise(n, /*reads=*/3, /*writes=*/2);
}

}  // namespace ranklab::compute
