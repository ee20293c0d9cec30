#include "fabric/presets.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/status.h"

namespace ranklab::fabric {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Presets, AreTheNetworksOfTheField) {
  std::vector<std::string_view> names;
  for (const Preset& preset : Presets()) {
    names.push_back(preset.name);
  }
  EXPECT_THAT(names, ElementsAre("pcie3_x16", "pcie4_x16", "pcie5_x16", "nvlink2", "nvlink3",
                                 "nvlink4", "nvlink5", "ib_edr", "ib_hdr", "ib_ndr", "ib_xdr",
                                 "ethernet_1g", "ethernet_10g", "ethernet_25g", "ethernet_100g"));
}

TEST(Presets, AreUsableAndSayWhereTheyComeFrom) {
  for (const Preset& preset : Presets()) {
    SCOPED_TRACE(std::string(preset.name));
    EXPECT_GT(preset.port.bandwidth.bytes_per_second, 0);
    EXPECT_GT(preset.port.alpha, Nanos(0));
    EXPECT_EQ(preset.port.jitter, Nanos(0));
    EXPECT_EQ(preset.port.loss_probability, 0);
    EXPECT_FALSE(preset.words.empty());
    EXPECT_FALSE(preset.source.empty());
  }
}

// Values of NCCL's topology model (v2.30.7) and of collectives' published latency ranges.
TEST(Presets, CarryThePublishedValues) {
  EXPECT_EQ(FindPreset("pcie4_x16")->port.bandwidth.bytes_per_second, 24e9);
  EXPECT_EQ(FindPreset("nvlink4")->port.bandwidth.bytes_per_second, 370.8e9);
  EXPECT_EQ(FindPreset("ib_ndr")->port.bandwidth.bytes_per_second, 50e9);
  EXPECT_EQ(FindPreset("nvlink4")->port.alpha, Nanos(1900));
  EXPECT_EQ(FindPreset("ethernet_10g")->port.alpha, std::chrono::microseconds(30));
}

TEST(FindPreset, NamesTheNearestWhenThereIsNone) {
  const absl::StatusOr<Preset> found = FindPreset("nvlnk4");
  ASSERT_EQ(found.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(found.status()), HasSubstr("no network preset \"nvlnk4\"; one of pcie3"));
  EXPECT_THAT(MessageOf(found.status()), HasSubstr("did you mean \"nvlink4\"?"));
}

TEST(Dilate, StretchesTimesAndShrinksBandwidth) {
  const LinkSpec spec{.alpha = Nanos(1900),
                      .bandwidth = {370.8e9},
                      .jitter = Nanos(7),
                      .loss_probability = 0.25,
                      .retransmit_after = Nanos(100)};
  const LinkSpec dilated = Dilate(spec, 1000);
  EXPECT_EQ(dilated.alpha, Nanos(1'900'000));
  EXPECT_EQ(dilated.jitter, Nanos(7000));
  EXPECT_EQ(dilated.retransmit_after, Nanos(100'000));
  EXPECT_EQ(dilated.loss_probability, 0.25);
  EXPECT_DOUBLE_EQ(dilated.bandwidth.bytes_per_second, 370.8e6);
}

TEST(Dilate, ByOneChangesNothing) {
  for (const Preset& preset : Presets()) {
    const LinkSpec same = Dilate(preset.port, 1);
    EXPECT_EQ(same.alpha, preset.port.alpha);
    EXPECT_EQ(same.bandwidth.bytes_per_second, preset.port.bandwidth.bytes_per_second);
  }
}

// Linearity: on a network dilated by k, every passage takes k times as long.
TEST(Dilate, MakesEveryPassageLongerByTheScale) {
  for (const Preset& preset : Presets()) {
    SCOPED_TRACE(std::string(preset.name));
    LinkModel link(preset.port, 1);
    LinkModel dilated_link(Dilate(preset.port, 200), 1);
    LinkModel* const links[] = {&link};
    LinkModel* const dilated_links[] = {&dilated_link};
    for (const Bytes size : {0, 1, 4096, 1 << 20, 25 << 20}) {
      const Nanos plain = Path::Depart(Nanos(0), size, links).arrives;
      const Nanos dilated = Path::Depart(Nanos(0), size, dilated_links).arrives;
      // Half a nanosecond of rounding a message, 200 times.
      EXPECT_NEAR(static_cast<double>(dilated.count()), 200.0 * static_cast<double>(plain.count()),
                  600);
    }
  }
}

}  // namespace
}  // namespace ranklab::fabric
