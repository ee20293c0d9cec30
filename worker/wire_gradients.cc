#include "worker/wire_gradients.h"

#include "compute/operations.h"
#include "core/status.h"

namespace ranklab::worker {

absl::StatusOr<WireGradients> WireGradients::Make(Model& model, compute::DType wire) {
  WireGradients gradients;
  if (wire != compute::DType::kFloat32) {
    ASSIGN_OR_RETURN(gradients.rounded_,
                     model.parameters().device->Allocate(model.parameter_count() * SizeOf(wire),
                                                         compute::MemoryKind::kCommunication));
  }
  return gradients;
}

absl::Status WireGradients::Round(Bucket& bucket) const {
  if (rounded_ == nullptr) {
    return absl::OkStatus();
  }
  bucket.sent = ViewOf(*rounded_, bucket.sent.dtype, bucket.gradients.shape, bucket.begin);
  return Convert(bucket.gradients, bucket.sent);
}

absl::Status WireGradients::Widen(const Bucket& bucket) const {
  return rounded_ == nullptr ? absl::OkStatus() : Convert(bucket.sent, bucket.gradients);
}

}  // namespace ranklab::worker
