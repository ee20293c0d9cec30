#include <array>
#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "compute/device.h"
#include "core/status.h"

namespace ranklab::compute {
namespace {

using testing::HasSubstr;

MemoryCount CountOf(const CpuDevice& device, MemoryKind kind) {
  return device.memory().at(static_cast<std::size_t>(kind));
}

TEST(CpuDevice, CountsNowAndPeakByKind) {
  CpuDevice device({});
  auto weights = device.Allocate(1000, MemoryKind::kWeights);
  ASSERT_TRUE(weights.ok());
  {
    auto first = device.Allocate(300, MemoryKind::kActivations);
    auto second = device.Allocate(200, MemoryKind::kActivations);
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_EQ(CountOf(device, MemoryKind::kActivations).now, 500);
  }
  auto third = device.Allocate(100, MemoryKind::kActivations);
  ASSERT_TRUE(third.ok());

  EXPECT_EQ(CountOf(device, MemoryKind::kActivations).now, 100);
  EXPECT_EQ(CountOf(device, MemoryKind::kActivations).peak, 500);
  EXPECT_EQ(CountOf(device, MemoryKind::kWeights).now, 1000);
  EXPECT_EQ(CountOf(device, MemoryKind::kWeights).peak, 1000);
  EXPECT_EQ(CountOf(device, MemoryKind::kOptimizer).peak, 0);
  for (int i = 0; i < kMemoryKinds; ++i) {
    EXPECT_EQ(device.memory().at(i).kind, static_cast<MemoryKind>(i));
  }
}

TEST(CpuDevice, AlignsEverySizeTo64Bytes) {
  CpuDevice device({});
  for (const Bytes size : {0, 1, 3, 63, 64, 65, 4097}) {
    auto buffer = device.Allocate(size, MemoryKind::kData);
    ASSERT_TRUE(buffer.ok()) << buffer.status();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>((*buffer)->data()) % 64, 0U);
    EXPECT_EQ((*buffer)->size(), size);
  }
}

TEST(CpuDevice, RefusalNamesKindAskedInUseAndCap) {
  CpuDevice device({.cap = 1000});
  auto weights = device.Allocate(600, MemoryKind::kWeights);
  auto gradients = device.Allocate(300, MemoryKind::kGradients);
  ASSERT_TRUE(weights.ok() && gradients.ok());

  const auto refused = device.Allocate(101, MemoryKind::kActivations);
  ASSERT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(MessageOf(refused.status()),
            "out of memory on cpu: activations asked for 101 bytes; in use: weights 600, gradients "
            "300; cap 1000");
  EXPECT_EQ(CountOf(device, MemoryKind::kActivations).peak, 0);
}

TEST(CpuDevice, CapIsReachedExactlyAndOpensAgain) {
  CpuDevice device({.cap = 1000});
  auto all = device.Allocate(1000, MemoryKind::kWeights);
  ASSERT_TRUE(all.ok());
  EXPECT_FALSE(device.Allocate(1, MemoryKind::kData).ok());
  all->reset();
  EXPECT_TRUE(device.Allocate(1000, MemoryKind::kData).ok());
}

TEST(CpuDevice, RefusesWhatOverflowsTheCapsArithmetic) {
  CpuDevice device({.cap = 1000});
  auto some = device.Allocate(500, MemoryKind::kWeights);
  EXPECT_EQ(device.Allocate(INT64_MAX, MemoryKind::kData).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(TensorView, SlicesAndReshapesWithoutCopying) {
  std::vector<float> values{0, 1, 2, 3, 4, 5};
  const TensorView all = HostView(std::span(values));
  EXPECT_THAT(HostValues<float>(Slice(all, 2, 4)), testing::ElementsAre(2, 3));
  EXPECT_EQ(Reshape(all, {2, 3, 1, 1}).data, all.data);
  EXPECT_DEATH(Slice(all, 4, 7), "check failed");
  EXPECT_DEATH(Reshape(all, {2, 2, 1, 1}), "check failed");
}

}  // namespace
}  // namespace ranklab::compute
