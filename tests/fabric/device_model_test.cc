#include "fabric/device_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/status.h"

namespace ranklab::fabric {
namespace {

using ::testing::HasSubstr;

constexpr DeviceModel kRound{.fp32_flops = 1e12, .bf16_flops = 4e12, .memory_bandwidth = 1e11};

TEST(TimeOf, TakesTheSlowerOfArithmeticAndMemoryAndAddsTheOverhead) {
  EXPECT_EQ(TimeOf(kRound, {.flops = 2e9, .bytes = 1e6}, Nanos(5000)), Nanos(2'005'000));
  EXPECT_EQ(TimeOf(kRound, {.flops = 2e6, .bytes = 1e9}, Nanos(5000)), Nanos(10'005'000));
  EXPECT_EQ(TimeOf(kRound, {}, Nanos(5000)), Nanos(5000));
}

TEST(TimeOf, UsesTheTensorCoresForBf16) {
  EXPECT_EQ(TimeOf(kRound, {.flops = 2e9, .precision = Precision::kBf16}, Nanos(0)),
            Nanos(500'000));
}

// No device may claim more than its published peak (fp32 outside tensor cores, dense bf16).
TEST(DeviceModels, StayBelowTheirPeaks) {
  struct Peak {
    std::string_view name;
    double fp32_flops, bf16_flops;
  };
  for (const Peak& peak : {Peak{"v100", 15.7e12, 125e12}, Peak{"a100", 19.5e12, 312e12},
                           Peak{"h100", 67e12, 989e12}}) {
    SCOPED_TRACE(std::string(peak.name));
    const absl::StatusOr<DeviceModel> device = FindDeviceModel(peak.name);
    ASSERT_TRUE(device.ok());
    EXPECT_LT(device->fp32_flops, peak.fp32_flops);
    EXPECT_GT(device->fp32_flops, 0.5 * peak.fp32_flops);
    EXPECT_LT(device->bf16_flops, peak.bf16_flops);
    EXPECT_GT(device->bf16_flops, 0.5 * peak.bf16_flops);
    EXPECT_GT(device->memory_bandwidth, 0);
    EXPECT_THAT(std::string(device->source), HasSubstr("assumed"));
  }
}

TEST(FindDeviceModel, NamesWhatThereIs) {
  const absl::StatusOr<DeviceModel> found = FindDeviceModel("a10");
  ASSERT_EQ(found.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MessageOf(found.status()),
            "no device model \"a10\"; one of v100, a100, h100; did you mean \"a100\"?");
}

}  // namespace
}  // namespace ranklab::fabric
