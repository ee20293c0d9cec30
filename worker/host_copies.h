// What an exchange over the host's network reads and writes of a model whose memory is a device's:
// page-locked copies of gradients as they travel, of their tail, and of parameters that a server
// updates.
#pragma once

#include <memory>

#include <absl/status/statusor.h>

#include "compute/host_transfers.h"
#include "compute/tensor.h"
#include "worker/gradient_exchange.h"
#include "worker/model.h"

namespace ranklab::worker {

// For the training thread. For a model in host memory there are no copies, and none of the methods
// but needed() may be called.
class HostCopies {
 public:
  // `parameters`: of those too. Errors: ResourceExhausted.
  static absl::StatusOr<HostCopies> Make(Model& model, compute::DType wire, bool parameters);

  bool needed() const { return transfers_ != nullptr; }

  // kGradientTail floats; behind the gradients where those travel as float32.
  float* tail() const;
  float* parameters() const;  // (parameter_count)

  // bucket.sent becomes a copy in host memory of `gradients`, which is what the device has them as
  // once all work queued until now is done. `done`: HostTransfers::Download.
  void Download(const compute::TensorView& gradients, Bucket& bucket, DoneFn done) const;
  // `gradients` become what is in bucket.sent. Errors: Internal, the device failed.
  absl::Status Upload(const Bucket& bucket, const compute::TensorView& gradients) const;
  // The model's parameters become what is in parameters(). Errors: as Upload.
  absl::Status UploadParameters() const;

 private:
  compute::TensorView device_parameters_;
  compute::HostTransfers* transfers_ = nullptr;  // null: not needed
  std::unique_ptr<compute::Buffer> gradients_, parameters_;
  Bytes tail_begin_ = 0;  // in gradients_
};

}  // namespace ranklab::worker
