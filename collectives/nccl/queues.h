// The two queues of a GPU that a communicator's owner orders: the one that the model's operations
// run on, and the one that NCCL is given.
#pragma once

#include <string>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "collectives/nccl/api.h"

namespace ranklab::collectives::nccl {

// None of the calls blocks. Errors: Internal, the device failed.
class Queues {
 public:
  virtual ~Queues() = default;

  virtual Stream communication() = 0;

  // What is queued on one from now on waits for what is queued on the other until now.
  virtual absl::Status CommunicationWaitsForCompute() = 0;
  virtual absl::Status ComputeWaitsForCommunication() = 0;

  // Is everything done that is queued?
  virtual absl::StatusOr<bool> ComputeIsDone() = 0;
  virtual absl::StatusOr<bool> CommunicationIsDone() = 0;

  // Equal for the same GPU, in any process.
  virtual std::string device_id() = 0;
};

}  // namespace ranklab::collectives::nccl
