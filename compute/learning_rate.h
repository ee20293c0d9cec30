// The learning rate of each update: a pure function of how many came before it.
#pragma once

#include <cstdint>
#include <string_view>

namespace ranklab::compute {

// Over the first `ramp` updates the rate rises in equal steps from peak x `ramp_from`; then it
// stays at `peak`, or falls along half a cosine to peak x `final_share` at update `total`. Source:
// gradual warm-up: Goyal et al., "Accurate, large minibatch SGD", 2017; cosine: Loshchilov and
// Hutter, "SGDR", ICLR 2017.
struct LearningRate {
  double peak = 0.0;
  std::int64_t ramp = 0;
  double ramp_from = 0.0;  // of the peak
  bool cosine = false;
  std::int64_t total = 0;    // updates; for the cosine
  double final_share = 0.0;  // of the peak
  // A server that applies each of n workers' steps by itself makes n updates of a step.
  std::int64_t updates_per_step = 1;

  // Of the update that follows `updates` earlier ones.
  double At(std::int64_t updates) const;
};

// How much a rate that was tuned for batches of `base` grows for batches of `batch`: "none" 1,
// "linear" batch / base, "sqrt" its root. Source: Goyal et al., 2017, for SGD; Malladi et al., "On
// the SDEs and scaling rules for adaptive gradient algorithms", 2022, for Adam.
// Requires: batch, base >= 1, one of these rules.
double RateScale(std::string_view rule, std::int64_t batch, std::int64_t base);

}  // namespace ranklab::compute
