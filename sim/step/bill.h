// Joules and dollars of a step. Every figure here is assumed: nothing was metered.
#pragma once

#include "sim/cluster/accelerator.h"

namespace ranklab::sim {

struct Tariff {
  double busy_share = 0.85;          // of the thermal design power, computing
  double waiting_share = 0.60;       // waiting in a collective or for another stage
  double host_watts = 100;           // of a node's hosts, a device
  double usage_effectiveness = 1.2;  // PUE: the whole site over the machines
  double grams_co2_kwh = 475;        // CodeCarbon's default
};

struct Bill {
  double joules = 0;
  double kwh = 0;
  double co2_kg = 0;
  double dollars[3] = {};  // low, middle, high; 0: no price assumed
};

// Of `devices` that are busy for `busy` seconds and wait for `waiting`.
Bill BillOf(const Accelerator& accelerator, const Tariff& tariff, int devices, double busy,
            double waiting);

}  // namespace ranklab::sim
