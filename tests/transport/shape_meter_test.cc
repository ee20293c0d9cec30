#include "transport/shape_meter.h"

#include <chrono>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ranklab::transport {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr fabric::LinkSpec kPort{.alpha = milliseconds(1), .bandwidth = {1e9}};

// A message that departs at 0, finds the port free, takes 1 ms of bytes and keeps its time.
constexpr ShapeMeter::Delivery kPunctual{.size = 1'000'000,
                                         .departs = Nanos(0),
                                         .begins = milliseconds(1),
                                         .arrives = milliseconds(2),
                                         .completed = milliseconds(2),
                                         .delivered = milliseconds(2),
                                         .forgiven = Nanos(0)};

TEST(ShapeMeter, OfNothingReportsNothing) {
  const ShapeReport report = ShapeMeter(kPort, 1).Report();
  EXPECT_EQ(report.messages, 0);
  EXPECT_EQ(report.bandwidth_samples, 0);
  EXPECT_EQ(report.achieved_bandwidth_median, 0);
}

TEST(ShapeMeter, FindsThePortsBandwidthInPunctualMessages) {
  ShapeMeter meter(kPort, 1);
  meter.Record(kPunctual);
  const ShapeReport report = meter.Report();
  EXPECT_EQ(report.messages, 1);
  EXPECT_EQ(report.bandwidth_samples, 1);
  EXPECT_EQ(report.latency_samples, 0);
  EXPECT_DOUBLE_EQ(report.achieved_bandwidth_median, 1e9);
  EXPECT_EQ(report.lateness_log2_us.at(0), 1);
}

TEST(ShapeMeter, TakesAlphaFromSmallMessages) {
  ShapeMeter meter(kPort, 1);
  meter.Record({.size = 1000,
                .departs = Nanos(0),
                .begins = milliseconds(1),
                .arrives = milliseconds(1) + microseconds(1),
                .completed = milliseconds(1),
                .delivered = milliseconds(1) + microseconds(71),
                .forgiven = microseconds(70)});
  EXPECT_EQ(meter.Report().latency_median, milliseconds(1) + microseconds(70));
  EXPECT_EQ(meter.Report().loop_late_p90, microseconds(70));
}

TEST(ShapeMeter, SortsLatenessByPowersOfTwo) {
  ShapeMeter meter(kPort, 1);
  for (const int late_us : {0, 1, 2, 3, 4, 1023, 1024}) {
    ShapeMeter::Delivery delivery = kPunctual;
    delivery.completed += microseconds(late_us);
    delivery.delivered = delivery.completed;
    meter.Record(delivery);
  }
  const ShapeReport report = meter.Report();
  EXPECT_EQ(report.lateness_log2_us.at(0), 2);
  EXPECT_EQ(report.lateness_log2_us.at(1), 2);
  EXPECT_EQ(report.lateness_log2_us.at(2), 1);
  EXPECT_EQ(report.lateness_log2_us.at(9), 1);
  EXPECT_EQ(report.lateness_log2_us.at(10), 1);
  EXPECT_EQ(report.lateness_max, microseconds(1024));
  EXPECT_EQ(std::accumulate(report.lateness_log2_us.begin(), report.lateness_log2_us.end(), 0), 7);
}

// The duration is 2 ms: 5 % of it is less than the 0.2 ms that is always allowed. Of 20 ms it is 1.
TEST(ShapeMeter, CountsWhatCouldNotKeepUp) {
  ShapeMeter meter(kPort, 1);
  ShapeMeter::Delivery delivery = kPunctual;
  delivery.completed = delivery.delivered = milliseconds(2) + microseconds(200);
  meter.Record(delivery);
  EXPECT_EQ(meter.Report().could_not_keep_up, 0);
  delivery.completed = delivery.delivered = milliseconds(2) + microseconds(201);
  meter.Record(delivery);
  EXPECT_EQ(meter.Report().could_not_keep_up, 1);
  delivery.arrives = milliseconds(20);
  delivery.completed = delivery.delivered = milliseconds(21);
  meter.Record(delivery);
  EXPECT_EQ(meter.Report().could_not_keep_up, 1);
}

TEST(ShapeMeter, ASlowTransferLowersTheBandwidth) {
  ShapeMeter meter(kPort, 1);
  ShapeMeter::Delivery delivery = kPunctual;
  delivery.completed = delivery.delivered = milliseconds(3);
  meter.Record(delivery);
  EXPECT_DOUBLE_EQ(meter.Report().achieved_bandwidth_median, 0.5e9);
}

TEST(ShapeMeter, SurvivesStampsFromLongAgoAndFarAhead) {
  ShapeMeter meter(kPort, 1);
  meter.Record({.size = 1 << 20,
                .departs = Nanos(0),
                .begins = Nanos(0),
                .arrives = Nanos(0),
                .completed = Nanos::max() / 2,
                .delivered = Nanos::max() / 2,
                .forgiven = Nanos(0)});
  EXPECT_EQ(meter.Report().could_not_keep_up, 1);
  EXPECT_EQ(meter.Report().lateness_log2_us.back(), 1);
}

TEST(Reservoir, IsExactWhileEverythingFits) {
  Reservoir reservoir(1);
  for (int i = 100; i >= 1; --i) {
    reservoir.Add(i);
  }
  EXPECT_EQ(reservoir.Quantile(0.5), 50);
  EXPECT_EQ(reservoir.Quantile(0.9), 90);
  EXPECT_EQ(reservoir.Quantile(1), 100);
}

// 100,000 values in 1,024 places: the sample's median is within 3 standard errors (0.016 each) of
// the true one, whatever the order of arrival.
TEST(Reservoir, KeepsAUniformSample) {
  Reservoir reservoir(3);
  constexpr int kValues = 100'000;
  for (int i = 0; i < kValues; ++i) {
    reservoir.Add(i);
  }
  EXPECT_EQ(reservoir.seen(), kValues);
  EXPECT_NEAR(reservoir.Quantile(0.5) / kValues, 0.5, 0.047);
  EXPECT_NEAR(reservoir.Quantile(0.9) / kValues, 0.9, 0.03);
}

}  // namespace
}  // namespace ranklab::transport
