#include "sim/reliability/reliability.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "core/random.h"

namespace ranklab::sim {
namespace {

constexpr double kSecondsPerDay = 86400;

// Seconds until `intervals` checkpoints are written.
double PlayRun(const Checkpointing& checkpointing, Random& random, int intervals) {
  const auto until_failure = [&] {
    return -checkpointing.between_failures * std::log1p(-random.Uniform());
  };
  const double segment = checkpointing.interval + checkpointing.write;
  double now = 0;
  double failure = until_failure();
  for (int done = 0; done < intervals;) {
    if (failure >= segment) {
      now += segment;
      failure -= segment;
      ++done;
    } else {
      now += failure + checkpointing.restart;
      failure = until_failure();
    }
  }
  return now;
}

}  // namespace

double MeanTimeBetweenFailures(double nodes, double rate) {
  return kSecondsPerDay / (nodes * rate);
}

double YoungInterval(double write, double between_failures) {
  return std::sqrt(2 * write * between_failures);
}

double DalyInterval(double write, double between_failures) {
  const double ratio = write / (2 * between_failures);
  if (ratio >= 1) {
    return between_failures;
  }
  return YoungInterval(write, between_failures) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - write;
}

double EffectiveTimeFirstOrder(const Checkpointing& checkpointing) {
  const double lost =
      (checkpointing.restart + checkpointing.interval / 2) / checkpointing.between_failures;
  return std::max(0.0, (1 - lost) / (1 + checkpointing.write / checkpointing.interval));
}

double EffectiveTime(const Checkpointing& checkpointing) {
  const double m = checkpointing.between_failures;
  const double segment = checkpointing.interval + checkpointing.write;
  return checkpointing.interval / ((m + checkpointing.restart) * std::expm1(segment / m));
}

Estimate PlayFailures(const Checkpointing& checkpointing, std::uint64_t seed, int runs,
                      int intervals) {
  RANKLAB_CHECK(runs > 1, "an interval needs several runs");
  RANKLAB_CHECK(checkpointing.interval + checkpointing.write < 20 * checkpointing.between_failures,
                "a run that ends");
  Random random(seed);
  double sum = 0;
  double squares = 0;
  for (int run = 0; run < runs; ++run) {
    const double seconds = PlayRun(checkpointing, random, intervals) / intervals;
    sum += seconds;
    squares += seconds * seconds;
  }
  // The mean time of an interval, then its share: the interval of the former maps onto the
  // latter's.
  const double mean = sum / runs;
  const double variance = std::max(0.0, squares / runs - mean * mean) / (runs - 1);
  const double share = checkpointing.interval / mean;
  return {.mean = share, .half_width = 1.96 * std::sqrt(variance) / mean * share};
}

}  // namespace ranklab::sim
