// One GPU. In a build without CUDA every function here answers so.
#pragma once

#include <memory>
#include <string>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "compute/tensor.h"

namespace ranklab::compute::cuda {

using Stream = void*;  // cudaStream_t

struct CudaOptions {
  int ordinal = 0;
  Bytes cap = 0;      // of all kinds together; 0: none but the GPU's memory
  bool tf32 = false;  // for float32 products: CUBLAS_COMPUTE_32F_FAST_TF32
};

// Operations queue on the compute stream and return; those that hand a number back, and copies from
// and to the host, wait. Gradients travel on the communication stream. A tensor's `data` is a
// device pointer. What is counted by kind is tensors: not the driver's context, cuBLASLt's
// workspace, nor sums between two kernels. Allocate and release from any thread, all else from one.
class CudaDevice : public Device {
 public:
  virtual Stream compute_stream() = 0;
  virtual Stream communication_stream() = 0;

  // What is queued on one stream from now on waits for what is queued on the other until now.
  // Errors: Internal, the driver failed.
  virtual absl::Status CommunicationWaitsForCompute() = 0;
  virtual absl::Status ComputeWaitsForCommunication() = 0;

  // Is everything done that is queued? Neither waits. Errors: Internal, the driver failed.
  virtual absl::StatusOr<bool> ComputeIsDone() = 0;
  virtual absl::StatusOr<bool> CommunicationIsDone() = 0;

  // For a thread other than the one that made it, before that calls CUDA or NCCL itself.
  virtual absl::Status MakeCurrent() = 0;

  virtual const std::string& model() const = 0;  // "NVIDIA H200"
  // Of this GPU among all, "GPU-0123...": tells whether two processes have the same one.
  virtual const std::string& uuid() const = 0;
};

// At least 1. Errors: Unimplemented, a build without CUDA; FailedPrecondition, no driver or no GPU,
// in words that say which.
absl::StatusOr<int> DeviceCount();

// Errors: as DeviceCount; InvalidArgument, no such ordinal; FailedPrecondition, a GPU older than
// those this build is for, or cuBLASLt is not there.
absl::StatusOr<std::unique_ptr<CudaDevice>> MakeCudaDevice(const CudaOptions& options);

}  // namespace ranklab::compute::cuda
