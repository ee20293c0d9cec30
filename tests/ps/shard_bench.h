// A shard on a device and a virtual loop of its own, and optimizers that show what was counted.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compute/device.h"
#include "compute/optimizer.h"
#include "core/check.h"
#include "core/status.h"
#include "ps/shard.h"
#include "sim/virtual_loop.h"

namespace ranklab::ps {

// Adds gradients as they are, whatever the scale: with whole numbers, the parameters say exactly
// what was counted, and how often.
class Counting final : public compute::Optimizer {
 public:
  absl::Status Apply(compute::TensorView parameters, compute::TensorView gradients,
                     double) override {
    auto* into = reinterpret_cast<float*>(parameters.data);
    const auto* from = reinterpret_cast<const float*>(gradients.data);
    for (std::int64_t i = 0; i < parameters.element_count(); ++i) {
      into[i] += from[i];
    }
    return absl::OkStatus();
  }
  std::vector<std::pair<std::string, compute::TensorView>> State() override { return {}; }
};

inline OptimizerFactory CountingFactory() {
  return [] { return std::make_unique<Counting>(); };
}

// Parameters in a device's memory and the shard that updates them.
class HostedShard {
 public:
  HostedShard(EventLoop& loop, const ShardOptions& options, const OptimizerFactory& make_optimizer,
              const std::vector<float>& initial = {}) {
    auto memory = device_.Allocate(options.range.size() * Bytes{sizeof(float)},
                                   compute::MemoryKind::kWeights);
    RANKLAB_CHECK(memory.ok());
    memory_ = *std::move(memory);
    std::fill_n(parameters(), options.range.size(), 0.0F);
    std::copy(initial.begin(), initial.end(), parameters());
    auto shard = Shard::Make(
        loop, options, make_optimizer,
        compute::ViewOf(*memory_, compute::DType::kFloat32, {options.range.size(), 1, 1, 1}));
    RANKLAB_CHECK(shard.ok(), "%s", MessageOf(shard.status()));
    shard_ = *std::move(shard);
  }

  Shard& operator*() { return *shard_; }
  Shard* operator->() { return shard_.get(); }
  float* parameters() { return reinterpret_cast<float*>(memory_->data()); }

 private:
  compute::CpuDevice device_{compute::CpuOptions{}};
  std::unique_ptr<compute::Buffer> memory_;
  std::unique_ptr<Shard> shard_;
};

inline compute::TensorView Float32View(std::vector<float>& values) {
  return {.data = reinterpret_cast<std::byte*>(values.data()),
          .dtype = compute::DType::kFloat32,
          .shape = {static_cast<std::int64_t>(values.size()), 1, 1, 1}};
}

}  // namespace ranklab::ps
