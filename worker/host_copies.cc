#include "worker/host_copies.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "core/status.h"

namespace ranklab::worker {

using compute::DType;
using compute::TensorView;

absl::StatusOr<HostCopies> HostCopies::Make(Model& model, DType wire, bool parameters) {
  HostCopies copies;
  copies.device_parameters_ = model.parameters();
  compute::Device* const device = copies.device_parameters_.device;
  copies.transfers_ = device == nullptr ? nullptr : device->host_transfers();
  if (!copies.needed()) {
    return copies;
  }
  const Bytes element = SizeOf(DType::kFloat32);
  const Bytes travelling = model.parameter_count() * SizeOf(wire);
  copies.tail_begin_ = (travelling + element - 1) / element * element;
  ASSIGN_OR_RETURN(copies.gradients_,
                   copies.transfers_->AllocateHost(copies.tail_begin_ + kGradientTail * element));
  std::fill_n(copies.tail(), kGradientTail, 0.0F);
  if (parameters) {
    ASSIGN_OR_RETURN(copies.parameters_,
                     copies.transfers_->AllocateHost(model.parameter_count() * element));
  }
  return copies;
}

float* HostCopies::tail() const {
  RANKLAB_CHECK(needed());
  return reinterpret_cast<float*>(gradients_->data() + tail_begin_);
}

float* HostCopies::parameters() const {
  RANKLAB_CHECK(parameters_ != nullptr);
  return reinterpret_cast<float*>(parameters_->data());
}

void HostCopies::Download(const TensorView& gradients, Bucket& bucket, DoneFn done) const {
  RANKLAB_CHECK(needed());
  bucket.sent = {.data = gradients_->data() + bucket.begin * SizeOf(gradients.dtype),
                 .dtype = gradients.dtype,
                 .shape = gradients.shape,
                 .device = nullptr};
  transfers_->Download(gradients, bucket.sent, std::move(done));
}

absl::Status HostCopies::Upload(const Bucket& bucket, const TensorView& gradients) const {
  RANKLAB_CHECK(needed());
  return transfers_->Upload(bucket.sent, gradients);
}

absl::Status HostCopies::UploadParameters() const {
  const TensorView host{.data = reinterpret_cast<std::byte*>(parameters()),
                        .dtype = DType::kFloat32,
                        .shape = device_parameters_.shape,
                        .device = nullptr};
  return transfers_->Upload(host, device_parameters_);
}

}  // namespace ranklab::worker
