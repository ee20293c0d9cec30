// Between the memory of a device and the host's, beside the device's own work: what an exchange
// over the host's network needs.
#pragma once

#include <memory>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "compute/tensor.h"
#include "core/event_loop.h"

namespace ranklab::compute {

// From the training thread; calls return at once. Host memory that is given here must stay until
// the device has been synchronized or `done` has run.
class HostTransfers {
 public:
  virtual ~HostTransfers() = default;

  // Page-locked memory, which a device reads and writes without a copy between. No device counts
  // it. Errors: ResourceExhausted.
  virtual absl::StatusOr<std::unique_ptr<Buffer>> AllocateHost(Bytes size) = 0;

  // `host` becomes what `x` is once all work queued until now is done, while later work goes on.
  // `done` runs once, on a thread that must not call the device. Requires: equal byte counts.
  virtual void Download(const TensorView& x, const TensorView& host, DoneFn done) = 0;

  // `x` becomes what `host` holds; work queued from now on waits for it.
  // Errors: Internal, the device failed.
  virtual absl::Status Upload(const TensorView& host, const TensorView& x) = 0;
};

}  // namespace ranklab::compute
