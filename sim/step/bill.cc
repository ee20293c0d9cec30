#include "sim/step/bill.h"

namespace ranklab::sim {

Bill BillOf(const Accelerator& accelerator, const Tariff& tariff, int devices, double busy,
            double waiting) {
  constexpr double kJoulesPerKwh = 3.6e6;
  constexpr double kSecondsPerHour = 3600;
  const double device_joules =
      accelerator.watts * (tariff.busy_share * busy + tariff.waiting_share * waiting);
  const double host_joules = tariff.host_watts * (busy + waiting);
  Bill bill;
  bill.joules = devices * (device_joules + host_joules) * tariff.usage_effectiveness;
  bill.kwh = bill.joules / kJoulesPerKwh;
  bill.co2_kg = bill.kwh * tariff.grams_co2_kwh / 1e3;
  for (int i = 0; i < 3; ++i) {
    bill.dollars[i] = accelerator.dollars_hour[i] * devices * (busy + waiting) / kSecondsPerHour;
  }
  return bill;
}

}  // namespace ranklab::sim
