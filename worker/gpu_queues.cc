#include "worker/gpu_queues.h"

#include "compute/cuda/cuda_device.h"

namespace ranklab::worker {
namespace {

class GpuQueues final : public collectives::nccl::Queues {
 public:
  explicit GpuQueues(compute::cuda::CudaDevice& device) : device_(device) {}

  collectives::nccl::Stream communication() override { return device_.communication_stream(); }
  absl::Status CommunicationWaitsForCompute() override {
    return device_.CommunicationWaitsForCompute();
  }
  absl::Status ComputeWaitsForCommunication() override {
    return device_.ComputeWaitsForCommunication();
  }
  absl::StatusOr<bool> ComputeIsDone() override { return device_.ComputeIsDone(); }
  absl::StatusOr<bool> CommunicationIsDone() override { return device_.CommunicationIsDone(); }
  std::string device_id() override { return device_.uuid(); }

 private:
  compute::cuda::CudaDevice& device_;
};

}  // namespace

std::unique_ptr<collectives::nccl::Queues> QueuesOf(compute::Device& device) {
  auto* const gpu = dynamic_cast<compute::cuda::CudaDevice*>(&device);
  return gpu == nullptr ? nullptr : std::make_unique<GpuQueues>(*gpu);
}

}  // namespace ranklab::worker
