// What a GPU is beyond its operations. Skipped, with the reason, where there is none.
#include "compute/cuda/cuda_device.h"

#include <atomic>
#include <cstring>
#include <vector>

#include <absl/synchronization/notification.h>
#include <gmock/gmock.h>

#include "compute/host_transfers.h"
#include "tests/compute/cuda/tensors_on_device.h"

namespace ranklab::compute::cuda {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using CudaDeviceTest = OnDevice;

TEST_F(CudaDeviceTest, CountsByKindAndRefusesBeyondItsCap) {
  const auto gpu = MakeCudaDevice({.cap = 1000});
  ASSERT_TRUE(gpu.ok()) << MessageOf(gpu.status());
  const auto weights = (*gpu)->Allocate(600, MemoryKind::kWeights);
  ASSERT_TRUE(weights.ok());
  const auto refused = (*gpu)->Allocate(401, MemoryKind::kOptimizer);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(MessageOf(refused.status()),
              AllOf(HasSubstr("on cuda:0: optimizer asked for 401 bytes"), HasSubstr("weights 600"),
                    HasSubstr("cap 1000")));
}

TEST_F(CudaDeviceTest, RefusesMoreThanTheGpuHas) {
  const auto refused = device_->Allocate(Bytes{1} << 50, MemoryKind::kActivations);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(MessageOf(refused.status()), HasSubstr("activations asked for"));
  EXPECT_TRUE(device_->Allocate(1 << 20, MemoryKind::kActivations).ok()) << "goes on afterwards";
}

TEST_F(CudaDeviceTest, ADownloadIsOfWhatWasQueuedBeforeIt) {
  HostTransfers& transfers = *device_->host_transfers();
  constexpr std::int64_t kCount = 1 << 22;
  const Tensor x = Normal({kCount, 1, 1, 1}, DType::kFloat32);
  const auto host = transfers.AllocateHost(x.view.byte_count());
  ASSERT_TRUE(host.ok());
  TensorView view = ViewOf(**host, DType::kFloat32, x.view.shape);
  view.device = nullptr;
  ASSERT_TRUE(compute::FillZero(x.view).ok());
  absl::Notification done;
  absl::Status status;
  transfers.Download(x.view, view, [&](absl::Status result) {
    status = std::move(result);
    done.Notify();
  });
  ASSERT_TRUE(done.WaitForNotificationWithTimeout(absl::Seconds(30)));
  ASSERT_TRUE(status.ok()) << MessageOf(status);
  EXPECT_THAT(HostValues<float>(view), testing::Each(0.0F));
}

TEST_F(CudaDeviceTest, WorkAfterAnUploadSeesIt) {
  HostTransfers& transfers = *device_->host_transfers();
  constexpr std::int64_t kCount = 1 << 20;
  const Tensor x = Poisoned({kCount, 1, 1, 1}, DType::kFloat32);
  const auto host = transfers.AllocateHost(x.view.byte_count());
  ASSERT_TRUE(host.ok());
  TensorView view = ViewOf(**host, DType::kFloat32, x.view.shape);
  view.device = nullptr;
  std::ranges::fill(HostValues<float>(view), 2.0F);
  ASSERT_TRUE(transfers.Upload(view, x.view).ok());
  const auto squares = compute::SumOfSquares(x.view);
  ASSERT_TRUE(squares.ok());
  EXPECT_EQ(*squares, 4.0 * kCount);
  ASSERT_TRUE(device_->Synchronize().ok());
}

// TF32 has 10 bits of fraction: it rounds 1 + 2^-12 to 1, which float32 may not.
TEST_F(CudaDeviceTest, RoundsFactorsToTf32OnlyOnRequest) {
  constexpr std::int64_t kSide = 128;
  constexpr float kValue = 1.0F + 1.0F / 4096;
  const Shape square{kSide, kSide, 1, 1};
  std::vector<float> identity(kSide * kSide, 0.0F);
  for (std::int64_t i = 0; i < kSide; ++i) {
    identity[static_cast<std::size_t>(i * kSide + i)] = 1.0F;
  }
  for (const bool tf32 : {false, true}) {
    const auto gpu = MakeCudaDevice({.tf32 = tf32});
    ASSERT_TRUE(gpu.ok());
    device_ = gpu->get();
    const Tensor a = Holding(std::vector<float>(kSide * kSide, kValue), square, DType::kFloat32);
    const Tensor b = Holding(identity, square, DType::kFloat32);
    const Tensor c = Poisoned(square, DType::kFloat32);
    ASSERT_TRUE(compute::MatMul(a.view, Transpose::kNo, b.view, Transpose::kNo, 0.0F, c.view).ok());
    EXPECT_THAT(Back(c), testing::Each(testing::DoubleNear(kValue, tf32 ? 1.0 / 1024 : 0.0)));
  }
}

TEST_F(CudaDeviceTest, SaysWhichGpuItIs) {
  const auto gpu = MakeCudaDevice({});
  ASSERT_TRUE(gpu.ok());
  EXPECT_THAT((*gpu)->uuid(), testing::MatchesRegex("GPU-[0-9a-f]{32}"));
  EXPECT_FALSE((*gpu)->model().empty());
  EXPECT_NE((*gpu)->compute_stream(), (*gpu)->communication_stream());
}

}  // namespace
}  // namespace ranklab::compute::cuda
