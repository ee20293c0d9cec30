// What failures and checkpoints leave of a cluster's time. Seconds throughout.
// M: mean time between failures of the job; w: writing a checkpoint; tau: interval between them,
// work only; u: from a failure until work goes on, reading the checkpoint included.
#pragma once

#include <cstdint>

namespace ranklab::sim {

// Of `nodes` that fail independently, `rate` times a node-day.
double MeanTimeBetweenFailures(double nodes, double rate);

// sqrt(2 w M). Source: Young, CACM 17(9), 1974.
double YoungInterval(double write, double between_failures);
// sqrt(2 w M) (1 + sqrt(w/2M)/3 + (w/2M)/9) - w for w < 2M, else M.
// Source: Daly, Future Generation Computer Systems 22(3), 2006.
double DalyInterval(double write, double between_failures);

struct Checkpointing {
  double between_failures = 0;  // M
  double write = 0;             // w
  double restart = 0;           // u
  double interval = 0;          // tau
};

// Share of time that is kept work, first order in 1/M: (1 - (u + tau/2)/M) / (1 + w/tau); 0 where
// it would be below. Source: Kokolis et al., arXiv 2410.21680.
double EffectiveTimeFirstOrder(const Checkpointing& checkpointing);
// Exact for failures without memory, also while writing, none during a restart:
// tau / ((M + u) (exp((tau + w)/M) - 1)). Source: Daly, 2006, equation 13.
double EffectiveTime(const Checkpointing& checkpointing);

struct Estimate {
  double mean = 0;
  double half_width = 0;  // of the 95 % interval
};

// The same by playing `runs` runs of `intervals` checkpoints each with random failures.
// Requires: interval + write below 20 M, so that a run ends; runs > 1.
Estimate PlayFailures(const Checkpointing& checkpointing, std::uint64_t seed, int runs,
                      int intervals);

}  // namespace ranklab::sim
