// A process's clock against the coordinator's, from round trips. Pure.
//
//   asked (local) ----------> read (coordinator) ----------> answered (local)
//
// If the trip takes r = answered - asked, the coordinator's reading happened somewhere within it,
// so offset = read - (asked + answered) / 2 is wrong by at most r / 2, however unequal the two ways
// are. Source: Cristian, "Probabilistic clock synchronization", Distributed Computing 3(3), 1989.
#pragma once

#include <deque>
#include <optional>

#include "core/units.h"

namespace ranklab::coordinator {

struct ClockOffset {
  Nanos offset{};    // coordinator = local + offset
  Nanos residual{};  // the offset is right within +- this
};

struct ClockAlignmentOptions {
  // The best round trip of a window counts: long enough to meet a quick one, short enough to follow
  // clocks that drift.
  int window = 32;
  // How fast two clocks may drift apart; an old sample is worth less by this. 100 ppm is the
  // tolerance of a cheap crystal, assumed.
  double drift = 100e-6;
};

class ClockAlignment {
 public:
  explicit ClockAlignment(ClockAlignmentOptions options = {});

  // Samples whose answer comes before the question are dropped (a clock was set).
  void Add(Nanos asked, Nanos read, Nanos answered);

  // The sample of the window whose offset is surest at `now`, with its age counted in the residual.
  // Nothing before the first sample.
  std::optional<ClockOffset> At(Nanos now) const;

 private:
  struct Sample {
    Nanos taken{};
    Nanos offset{};
    Nanos half_trip{};
  };

  ClockAlignmentOptions options_;
  std::deque<Sample> samples_;
};

}  // namespace ranklab::coordinator
