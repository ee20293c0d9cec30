// With and without CUDA in the build, with and without a GPU: what is not there is refused by name.
#include "compute/make_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compute/cuda/cuda_device.h"
#include "core/status.h"

namespace ranklab::compute {
namespace {

TEST(MakeDevice, TheCpuIsAlwaysThere) {
  const auto device = MakeDevice("cpu", {});
  ASSERT_TRUE(device.ok());
  EXPECT_EQ((*device)->name(), "cpu");
}

TEST(MakeDevice, AutoIsAGpuWhereThereIsOne) {
  const auto device = MakeDevice("auto", {});
  ASSERT_TRUE(device.ok());
  EXPECT_EQ((*device)->name(), cuda::DeviceCount().ok() ? "cuda:0" : "cpu");
}

TEST(MakeDevice, CudaIsRefusedByNameWhereThereIsNone) {
  const auto count = cuda::DeviceCount();
  if (count.ok()) {
    GTEST_SKIP() << *count << " GPUs are here";
  }
  const auto device = MakeDevice("cuda", {});
  EXPECT_EQ(device.status(), count.status());
  EXPECT_THAT(MessageOf(device.status()),
              testing::AnyOf(testing::StartsWith("device cuda: this build has no CUDA"),
                             testing::StartsWith("device cuda: there is no GPU")));
}

TEST(MakeDevice, AnUnknownNameIsAnsweredWithThoseThereAre) {
  const auto unknown = MakeDevice("tpu", {});
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(unknown.status()), testing::HasSubstr("auto, cpu, cuda"));
}

}  // namespace
}  // namespace ranklab::compute
