#include "compute/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/check.h"

namespace ranklab::compute {

double LearningRate::At(std::int64_t updates) const {
  RANKLAB_CHECK(updates >= 0 && updates_per_step >= 1);
  const std::int64_t step = updates / updates_per_step;
  if (step < ramp) {
    const double risen = static_cast<double>(step + 1) / static_cast<double>(ramp);
    return peak * (ramp_from + (1.0 - ramp_from) * risen);
  }
  if (!cosine) {
    return peak;
  }
  const auto left = static_cast<double>(std::max<std::int64_t>(1, total - ramp));
  const double done = std::min(1.0, static_cast<double>(step - ramp) / left);
  const double share = 0.5 * (1.0 + std::cos(std::numbers::pi * done));
  return peak * (final_share + (1.0 - final_share) * share);
}

double RateScale(std::string_view rule, std::int64_t batch, std::int64_t base) {
  RANKLAB_CHECK(batch >= 1 && base >= 1, "a batch of %d, tuned for %d", batch, base);
  const double times = static_cast<double>(batch) / static_cast<double>(base);
  if (rule == "linear") {
    return times;
  }
  if (rule == "sqrt") {
    return std::sqrt(times);
  }
  RANKLAB_CHECK(rule == "none", "scaling rule \"%s\"", rule);
  return 1.0;
}

}  // namespace ranklab::compute
