#include "report/steps_csv.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <absl/strings/numbers.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_split.h>

#include "core/check.h"
#include "core/status.h"

namespace ranklab::report {

std::string_view StepsCsvHeader() {
  return "part,cell,repeat,rank,step,epoch,samples,loss,begins_s,step_s,input_s,forward_s,"
         "backward_s,exposed_s,optimizer_s,lateness_s,staleness,bytes_sent,bytes_received,"
         "time_scale,loss_scale,skipped,hidden_s\n";
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
      const std::string loss =
          run.simulated
              ? ""
              : absl::StrFormat("%.9g", step.weight > 0 ? step.loss_sum / step.weight : 0);
      lines += absl::StrFormat(
          "%s,%d,%d,%d,%d,%d,%d,%s,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%d,%d,%d,%g,%g,%d,%s\n",
          part, run.cell, run.repeat, rank, step.step, step.epoch, step.samples, loss,
          seconds(step.begins - origin), seconds(step.step_time), seconds(step.input),
          seconds(step.forward), seconds(step.backward), seconds(step.exposed),
          seconds(step.optimizer), seconds(step.lateness), step.staleness, step.bytes_sent,
          step.bytes_received, run.time_scale, step.loss_scale, step.skipped,
          step.hidden ? absl::StrFormat("%.9g", seconds(*step.hidden)) : "");
    }
  }
  return lines;
}

namespace {

// Debian's Abseil has a string_view of its own.
absl::string_view Absl(std::string_view text) { return {text.data(), text.size()}; }

std::vector<std::string_view> Split(std::string_view line) {
  std::vector<std::string_view> fields;
  for (const absl::string_view field : absl::StrSplit(Absl(line), ',')) {
    fields.emplace_back(field.data(), field.size());
  }
  return fields;
}

// The fields of one line, by their place in the head. Remembers whether all were numbers.
class LineReader {
 public:
  explicit LineReader(std::vector<std::string_view> fields) : fields_(std::move(fields)) {}

  double Number(std::size_t column) {
    double value = 0;
    ok_ = absl::SimpleAtod(Absl(fields_[column]), &value) && std::isfinite(value) && ok_;
    return value;
  }
  template <typename T>
  void Whole(std::size_t column, T& value) {
    ok_ = absl::SimpleAtoi(Absl(fields_[column]), &value) && value >= 0 && ok_;
  }
  std::string_view Text(std::size_t column) const { return fields_[column]; }
  bool ok() const { return ok_; }

 private:
  std::vector<std::string_view> fields_;
  bool ok_ = true;
};

}  // namespace

absl::StatusOr<std::vector<StepLine>> ReadStepsCsv(std::string_view text) {
  const std::size_t columns = Split(StepsCsvHeader()).size();
  if (!text.starts_with(StepsCsvHeader())) {
    return InvalidArgument("line 1: not the head of a steps.csv of this version");
  }
  text.remove_prefix(StepsCsvHeader().size());
  std::vector<StepLine> lines;
  for (int number = 2; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    std::vector<std::string_view> fields = Split(text.substr(0, end));
    if (end == std::string_view::npos || fields.size() != columns) {
      return InvalidArgument("line %d: %d fields where %d and the line's end belong", number,
                             fields.size(), columns);
    }
    LineReader reader(std::move(fields));
    StepLine& line = lines.emplace_back();
    line.part = reader.Text(0);
    reader.Whole(1, line.cell);
    reader.Whole(2, line.repeat);
    reader.Whole(3, line.rank);
    reader.Whole(4, line.step);
    line.begins = reader.Number(8);
    line.total = reader.Number(9);
    line.input = reader.Number(10);
    line.forward = reader.Number(11);
    line.backward = reader.Number(12);
    line.exposed = reader.Number(13);
    line.optimizer = reader.Number(14);
    if (!reader.ok()) {
      return InvalidArgument("line %d: not a number where one belongs", number);
    }
    text.remove_prefix(end + 1);
  }
  return lines;
}

}  // namespace ranklab::report
