// How much slower than the modelled cluster a live run must go on this machine, so that modelled
// compute and modelled transfers can both be kept.
#pragma once

#include "core/units.h"

namespace ranklab::fabric {

// How long something takes on this machine, natively and beside everything else that a step does
// at once, and on the modelled cluster. A modelled time of 0 is not modelled and has no say.
struct RealAndModelled {
  double real_seconds = 0;
  double modelled_seconds = 0;
};

struct TimeScaleInputs {
  RealAndModelled compute;   // of one step of one worker
  RealAndModelled exchange;  // of one step, not overlapped with the compute
  RealAndModelled latency;   // of a small message, among all the others of an exchange
};

// The least round time scale, at least 1, under which the modelled compute and exchange take at
// least twice what they really take, the compute at least 20 ms, and the modelled latency 1.5 times
// what it really takes (but the latency asks for at most four times what the others ask for).
// Requires: every input finite and >= 0.
double ChooseTimeScale(const TimeScaleInputs& inputs);

// The least of 1, 1.5, 2, 3, 4, 5, 7, 10, 15, 20, ... that is not below `scale`, within rounding.
double RoundUpToNiceScale(double scale);

}  // namespace ranklab::fabric
