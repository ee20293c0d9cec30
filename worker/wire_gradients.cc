#include "worker/wire_gradients.h"

#include "compute/operations.h"
#include "core/status.h"

namespace ranklab::worker {

absl::StatusOr<WireGradients> WireGradients::Make(Model& model, compute::DType wire) {
  WireGradients gradients;
  gradients.wire_ = wire;
  if (wire != compute::DType::kFloat32) {
    ASSIGN_OR_RETURN(gradients.rounded_,
                     model.parameters().device->Allocate(model.parameter_count() * SizeOf(wire),
                                                         compute::MemoryKind::kCommunication));
  }
  return gradients;
}

compute::TensorView WireGradients::PlaceOf(const Bucket& bucket) const {
  return rounded_ == nullptr ? bucket.gradients
                             : ViewOf(*rounded_, wire_, bucket.gradients.shape, bucket.begin);
}

absl::Status WireGradients::Round(Bucket& bucket) const {
  bucket.sent = PlaceOf(bucket);
  return rounded_ == nullptr ? absl::OkStatus() : Convert(bucket.gradients, bucket.sent);
}

absl::Status WireGradients::Widen(const Bucket& bucket) const {
  return rounded_ == nullptr ? absl::OkStatus() : Convert(PlaceOf(bucket), bucket.gradients);
}

}  // namespace ranklab::worker
