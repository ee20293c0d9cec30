// Gradients as they travel: in the wire's dtype, where that is narrower than float32.
#pragma once

#include <memory>

#include <absl/status/statusor.h>

#include "compute/tensor.h"
#include "worker/gradient_exchange.h"
#include "worker/model.h"

namespace ranklab::worker {

// For the training thread. With float32 on the wire the gradients travel as they are.
class WireGradients {
 public:
  // Errors: ResourceExhausted.
  static absl::StatusOr<WireGradients> Make(Model& model, compute::DType wire);

  // Where a bucket lies as it travels, on the model's device.
  compute::TensorView PlaceOf(const Bucket& bucket) const;

  // That becomes the gradients, rounded; and the gradients what was sent or is received.
  absl::Status Round(Bucket& bucket) const;
  absl::Status Widen(const Bucket& bucket) const;

 private:
  compute::DType wire_ = compute::DType::kFloat32;
  std::unique_ptr<compute::Buffer> rounded_;  // of the whole model; null in float32
};

}  // namespace ranklab::worker
