// The parameters of a model and their gradients: two flat buffers, the same for every model, and
// the copy of the parameters that its passes read.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include <absl/status/statusor.h>

#include "compute/device.h"
#include "compute/tensor.h"

namespace ranklab::worker {

// Behind the gradients, in the same memory: room for what an exchange sums with them (the weight).
inline constexpr std::int64_t kGradientTail = 2;

// Master parameters and gradients are float32. With a storage of 16 bits the passes read a copy of
// the parameters rounded to it: 2 bytes more a parameter, and updates below its precision still add
// up. Source: Micikevicius et al., "Mixed precision training", ICLR 2018.
class ParameterMemory {
 public:
  ParameterMemory() = default;  // empty: only to be assigned to

  // `count` parameters, undefined, and their gradients, zero. `device` must outlive it.
  // Errors: ResourceExhausted.
  static absl::StatusOr<ParameterMemory> Make(compute::Device& device, std::int64_t count,
                                              compute::DType storage);

  compute::TensorView parameters() const;  // (count)
  compute::TensorView gradients() const;   // (count), then kGradientTail floats
  compute::DType storage() const { return storage_; }
  absl::Status ZeroGradients() const;  // the tail too

  // Brings the copy of elements [begin, end) up to date; nothing to do in float32.
  absl::Status Round(std::int64_t begin, std::int64_t end) const;

  // `shape` of the elements from `begin` on: master parameters, what the passes read, gradients.
  using Shape = std::array<std::int64_t, 4>;
  compute::TensorView Master(std::int64_t begin, const Shape& shape) const;
  compute::TensorView Weight(std::int64_t begin, const Shape& shape) const;
  compute::TensorView Gradient(std::int64_t begin, const Shape& shape) const;

 private:
  std::int64_t count_ = 0;
  compute::DType storage_ = compute::DType::kFloat32;
  std::unique_ptr<compute::Buffer> parameters_, gradients_;
  std::unique_ptr<compute::Buffer> rounded_;  // null in float32
};

}  // namespace ranklab::worker
