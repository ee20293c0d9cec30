// How much slower than the modelled cluster a live run must go on this machine, so that modelled
// compute and modelled transfers can both be kept.
#pragma once

#include "core/units.h"

namespace ranklab::fabric {

struct TimeScaleInputs {
  // Of one step without an exchange, all workers of the cell running at once on this machine.
  double real_step_seconds = 0;
  // Of the same step on the modelled device; not used where compute is native.
  double modelled_compute_seconds = 0;
  bool native_compute = false;  // compute is not held, so only the network needs the scale

  Bandwidth modelled_port;  // of one rank, one direction
  Bandwidth loopback;       // that this machine moves, all endpoints together
  int senders = 1;          // endpoints that send at once
  Nanos modelled_alpha{};   // of a message
  Nanos real_latency{};     // of a small message through the real wire; 0: not measured
};

// The least time scale of 1, 2 or 5 times a power of ten, at least 1, under which
//   modelled compute x scale            >= 2 x real step           (unless compute is native)
//   senders x modelled port / scale     <= loopback / 2
//   modelled alpha x scale              >= 1.5 x real latency      (where both are known)
// Requires: every input finite and >= 0; modelled compute > 0 unless native; ports and loopback
// > 0; senders >= 1.
double ChooseTimeScale(const TimeScaleInputs& inputs);

// The least of 1, 2, 5, 10, 20, 50, ... that is not below `scale`, within rounding.
double RoundUpToNiceScale(double scale);

}  // namespace ranklab::fabric
