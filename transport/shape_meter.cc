#include "transport/shape_meter.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>

#include "core/check.h"

namespace ranklab::transport {
namespace {

constexpr Bytes kLarge = 64 << 10;
constexpr Bytes kSmall = 1 << 10;
constexpr double kTolerance = 0.05;
constexpr Nanos kLatenessAllowed = std::chrono::microseconds(200);

Nanos ToNanos(double nanos) { return Nanos(std::llround(nanos)); }

}  // namespace

void Reservoir::Add(double value) {
  ++seen_;
  if (kept_.size() < kCapacity) {
    kept_.push_back(value);
    return;
  }
  const std::uint64_t place = random_.Below(static_cast<std::uint64_t>(seen_));
  if (place < kCapacity) {
    kept_[place] = value;
  }
}

double Reservoir::Quantile(double share) const {
  RANKLAB_CHECK(share > 0 && share <= 1);
  if (kept_.empty()) {
    return 0;
  }
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(kept_.size())));
  std::vector<double> sorted = kept_;
  const auto place = sorted.begin() + static_cast<std::ptrdiff_t>(rank - 1);
  std::nth_element(sorted.begin(), place, sorted.end());
  return *place;
}

ShapeMeter::ShapeMeter(const fabric::LinkSpec& port, std::uint64_t seed)
    : port_(port),
      bandwidth_(Random(seed).Split(0).Next()),
      latency_(Random(seed).Split(1).Next()),
      loop_late_(Random(seed).Split(2).Next()) {}

void ShapeMeter::Record(const Delivery& delivery) {
  ++messages_;
  const Nanos lateness = std::max(Nanos(0), delivery.completed - delivery.arrives);
  lateness_max_ = std::max(lateness_max_, lateness);
  const auto micros = static_cast<std::uint64_t>(lateness / std::chrono::microseconds(1));
  const int slot = std::max(0, static_cast<int>(std::bit_width(micros)) - 1);
  ++lateness_log2_us_[std::min(static_cast<std::size_t>(slot), kLatenessSlots - 1)];
  const auto duration = static_cast<double>((delivery.arrives - delivery.departs).count());
  if (lateness > std::max(ToNanos(kTolerance * duration), kLatenessAllowed)) {
    ++could_not_keep_up_;
  }

  const Nanos on_time = std::max(delivery.arrives, delivery.completed);
  loop_late_.Add(static_cast<double>((delivery.delivered - on_time).count()));
  if (delivery.size >= kLarge) {
    const Nanos took = delivery.delivered - delivery.forgiven - delivery.begins;
    // Below a nanosecond the figure is the clock's resolution.
    const double seconds = std::max(1.0, static_cast<double>(took.count())) * 1e-9;
    bandwidth_.Add(static_cast<double>(delivery.size) / seconds);
  }
  if (delivery.size <= kSmall) {
    const Nanos own = fabric::TransferTime(delivery.size, port_.bandwidth);
    const Nanos latency = delivery.delivered - delivery.begins - own + port_.alpha;
    latency_.Add(static_cast<double>(latency.count()));
  }
}

ShapeReport ShapeMeter::Report() const {
  ShapeReport report;
  report.messages = messages_;
  report.could_not_keep_up = could_not_keep_up_;
  report.lateness_log2_us.assign(lateness_log2_us_.begin(), lateness_log2_us_.end());
  report.lateness_max = lateness_max_;
  report.bandwidth_samples = bandwidth_.seen();
  report.achieved_bandwidth_median = bandwidth_.Quantile(0.5);
  report.achieved_bandwidth_p90 = bandwidth_.Quantile(0.1);
  report.latency_samples = latency_.seen();
  report.latency_median = ToNanos(latency_.Quantile(0.5));
  report.latency_p90 = ToNanos(latency_.Quantile(0.9));
  report.loop_late_p90 = ToNanos(loop_late_.Quantile(0.9));
  return report;
}

}  // namespace ranklab::transport
