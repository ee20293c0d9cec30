#include "report/steps_csv.h"

#include <algorithm>

#include <absl/strings/str_format.h>

#include "core/check.h"

namespace ranklab::report {

std::string_view StepsCsvHeader() {
  return "part,cell,repeat,rank,step,epoch,samples,loss,begins_s,step_s,input_s,forward_s,"
         "backward_s,exposed_s,optimizer_s,lateness_s,staleness,bytes_sent,bytes_received,"
         "time_scale\n";
}

std::string StepsCsvLines(std::string_view part, const experiment::CellRun& run) {
  RANKLAB_CHECK(run.time_scale > 0);
  Nanos origin = Nanos::max();
  for (const auto& rank : run.steps) {
    for (const experiment::StepRecord& step : rank) {
      origin = std::min(origin, step.begins);
    }
  }
  const auto seconds = [&](Nanos wall) {
    return std::chrono::duration<double>(wall).count() / run.time_scale;
  };
  std::string lines;
  for (std::size_t rank = 0; rank < run.steps.size(); ++rank) {
    for (const experiment::StepRecord& step : run.steps[rank]) {
      const double loss = step.weight > 0 ? step.loss_sum / step.weight : 0;
      lines += absl::StrFormat(
          "%s,%d,%d,%d,%d,%d,%d,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%d,%d,%d,%g\n", part,
          run.cell, run.repeat, rank, step.step, step.epoch, step.samples, loss,
          seconds(step.begins - origin), seconds(step.step_time), seconds(step.input),
          seconds(step.forward), seconds(step.backward), seconds(step.exposed),
          seconds(step.optimizer), seconds(step.lateness), step.staleness, step.bytes_sent,
          step.bytes_received, run.time_scale);
    }
  }
  return lines;
}

}  // namespace ranklab::report
