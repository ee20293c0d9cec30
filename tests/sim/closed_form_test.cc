// Simulated steps against the closed form of worker/predict, on every preset.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/seconds.h"
#include "fabric/presets.h"
#include "tests/sim/lab_cells.h"
#include "worker/predict.h"

namespace ranklab::sim {
namespace {

using experiment::Cell;
using experiment::CollectiveSpec;
using experiment::NoExchange;
using experiment::ParameterServerSpec;

std::vector<std::string> PresetNames() {
  std::vector<std::string> names;
  for (const fabric::Preset& preset : fabric::Presets()) {
    names.emplace_back(preset.name);
  }
  return names;
}

// Name and number of workers.
class ClosedForm : public ::testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  Cell Make() const { return SmallCell(std::get<0>(GetParam()), std::get<1>(GetParam())); }
  fabric::LinkSpec Port() const { return fabric::FindPreset(std::get<0>(GetParam()))->port; }

  static double Predicted(const Cell& cell) {
    const auto predicted = worker::PredictStep(cell.spec);
    EXPECT_TRUE(predicted.ok()) << predicted.status();
    return predicted.ok() ? predicted->step : 0;
  }
};

// Every transfer is rounded to a nanosecond, here and there, and a chunk may have an element more
// than a P-th.
double Tolerance(double seconds, int transfers, const fabric::LinkSpec& port) {
  return 1e-6 * seconds + transfers * (1e-9 + sizeof(float) / port.bandwidth.bytes_per_second);
}

TEST_P(ClosedForm, RingStepIsIt) {
  for (const bool overlap : {true, false}) {
    Cell cell = Make();
    cell.spec.exchange.kind = CollectiveSpec{};
    cell.spec.exchange.overlap = overlap;
    const double predicted = Predicted(cell);
    const SimulatedCell simulated = Simulate(cell);
    const int transfers = 2 * 2 * (cell.spec.cluster.workers - 1);  // of two buckets
    for (Step step = 1; step <= cell.spec.train.steps; ++step) {
      EXPECT_NEAR(SecondsOf(StepTime(simulated, step)), predicted,
                  Tolerance(predicted, transfers, Port()))
          << "step " << step << ", overlap " << overlap;
    }
  }
}

// The closed form cuts each bucket evenly over the servers and lets nobody pull before everybody
// has pushed. In the simulation the first bucket belongs to one server, and one server's answer
// leaves while the other still receives. Both are within what the live check allows.
TEST_P(ClosedForm, ServerStepIsWithinATenthOfIt) {
  for (const bool overlap : {true, false}) {
    Cell cell = Make();
    cell.spec.exchange.kind = ParameterServerSpec{};
    cell.spec.exchange.overlap = overlap;
    const double predicted = Predicted(cell);
    const SimulatedCell simulated = Simulate(cell);
    for (Step step = 1; step <= cell.spec.train.steps; ++step) {
      EXPECT_NEAR(SecondsOf(StepTime(simulated, step)) / predicted, 1.0, 0.1)
          << "step " << step << ", overlap " << overlap;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Presets, ClosedForm,
                         ::testing::Combine(::testing::ValuesIn(PresetNames()),
                                            ::testing::Values(2, 4)),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" +
                                  std::to_string(std::get<1>(info.param)) + "_workers";
                         });

}  // namespace
}  // namespace ranklab::sim
