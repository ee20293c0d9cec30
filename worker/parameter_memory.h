// The parameters of a model and their gradients: two flat buffers, the same for every model.
#pragma once

#include <cstdint>
#include <memory>

#include <absl/status/statusor.h>

#include "compute/device.h"
#include "compute/tensor.h"

namespace ranklab::worker {

// Behind the gradients, in the same memory: room for what an exchange sums with them (the weight).
inline constexpr std::int64_t kGradientTail = 2;

class ParameterMemory {
 public:
  ParameterMemory() = default;  // empty: only to be assigned to

  // `count` parameters in float32, undefined, and their gradients, zero. `device` must outlive it.
  // Errors: ResourceExhausted.
  static absl::StatusOr<ParameterMemory> Make(compute::Device& device, std::int64_t count);

  compute::TensorView parameters() const;  // (count)
  compute::TensorView gradients() const;   // (count), then kGradientTail floats
  absl::Status ZeroGradients() const;      // the tail too

  // For views of single tensors.
  compute::Buffer& parameter_buffer() const { return *parameters_; }
  compute::Buffer& gradient_buffer() const { return *gradients_; }

 private:
  std::int64_t count_ = 0;
  std::unique_ptr<compute::Buffer> parameters_, gradients_;
};

}  // namespace ranklab::worker
