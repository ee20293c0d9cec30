// Tensors of 16 bits on a CPU: stored in bfloat16 or float16, computed in float32.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "compute/tensor.h"

namespace ranklab::compute {

// The operands of one operation as float32: those that are, in place; stand-ins of the others, of
// which the written ones are rounded into their tensors when it goes. What an operation sums it
// sums in float32 and rounds once. Memory beyond the tensors: the stand-ins, which no device
// counts.
class Staging {
 public:
  Staging() = default;
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  ~Staging();

  const float* In(const TensorView& view);
  float* Out(const TensorView& view);  // holds no numbers yet
  float* InOut(const TensorView& view);

 private:
  float* StandInFor(const TensorView& view);

  std::vector<std::unique_ptr<float[]>> memory_;
  std::vector<std::pair<const float*, TensorView>> written_;
};

}  // namespace ranklab::compute
