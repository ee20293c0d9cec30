#include "fabric/time_scale.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace ranklab::fabric {
namespace {

// The rest of a step (loss, input, timers) and the exchange that overlaps with the backward pass
// need room beside the held layers; without it compute is late.
constexpr double kComputeHeadroom = 2.0;
// A median latency is kept only if most messages are quicker than it.
constexpr double kLatencyHeadroom = 1.5;
// Loopback bandwidth is measured with idle cores; in a step the cores also compute.
constexpr double kLoopbackHeadroom = 2.0;
// A scale that is a nice number but for rounding is that number.
constexpr double kRounding = 1e-9;

}  // namespace

double RoundUpToNiceScale(double scale) {
  RANKLAB_CHECK(std::isfinite(scale));
  for (double decade = 1;; decade *= 10) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      if (digit * decade >= scale * (1 - kRounding)) {
        return digit * decade;
      }
    }
  }
}

double ChooseTimeScale(const TimeScaleInputs& inputs) {
  RANKLAB_CHECK(inputs.senders >= 1, "%d senders", inputs.senders);
  RANKLAB_CHECK(inputs.modelled_port.bytes_per_second > 0);
  RANKLAB_CHECK(inputs.loopback.bytes_per_second > 0);
  double scale = kLoopbackHeadroom * inputs.senders * inputs.modelled_port.bytes_per_second /
                 inputs.loopback.bytes_per_second;
  if (!inputs.native_compute) {
    RANKLAB_CHECK(inputs.modelled_compute_seconds > 0 && inputs.real_step_seconds >= 0);
    scale = std::max(scale,
                     kComputeHeadroom * inputs.real_step_seconds / inputs.modelled_compute_seconds);
  }
  if (inputs.modelled_alpha > Nanos(0)) {
    scale = std::max(scale, kLatencyHeadroom * static_cast<double>(inputs.real_latency.count()) /
                                static_cast<double>(inputs.modelled_alpha.count()));
  }
  return RoundUpToNiceScale(scale);
}

}  // namespace ranklab::fabric
