#include "cli/record_writer.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include <google/protobuf/stubs/common.h>
#include <grpcpp/grpcpp.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cli/build_id.h"
#include "compute/device.h"
#include "core/status.h"
#include "experiment/expectation.h"
#include "experiment/summarize.h"
#include "report/sentences.h"
#include "report/web/render_record.h"
#include "worker/predict.h"
#include "worker/utilization.h"

namespace ranklab::cli {
namespace {

std::string ProcessorName() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) {
      const std::size_t colon = line.find(": ");
      return colon == std::string::npos ? line : line.substr(colon + 2);
    }
  }
  return "unknown";
}

std::map<std::string, std::string> Environment() {
  utsname name{};
  uname(&name);
  return {{"compiler", __VERSION__},
          {"cores", std::to_string(std::thread::hardware_concurrency())},
          {"grpc", grpc::Version()},
          {"kernel", std::string(name.sysname) + " " + name.release},
          {"machine", name.machine},
          {"products_of_16_bits", std::string(compute::ProductsOf16Bits())},
          {"processor", ProcessorName()},
          {"protobuf", google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION)},
          {"version", kVersion}};
}

double PredictedSeconds(const experiment::LabSpec& spec) {
  const auto predicted = worker::PredictStep(spec);
  return predicted.ok() ? predicted->step : 0.0;
}

double PredictedExposedSeconds(const experiment::LabSpec& spec) {
  const auto predicted = worker::PredictExposed(spec);
  return predicted.ok() ? *predicted : 0.0;
}

double LatencyShare(const experiment::LabSpec& spec) {
  const auto share = worker::PredictLatencyShare(spec);
  return share.ok() ? *share : 0.0;
}

const experiment::Cell& CellOf(const experiment::Lab& lab, const experiment::CellRun& run) {
  return lab.parts.at(static_cast<std::size_t>(run.part))
      .cells.at(static_cast<std::size_t>(run.cell));
}

// When the first rank began; nothing in a trace is older.
std::optional<Nanos> FirstStepOf(const experiment::CellRun& run) {
  std::optional<Nanos> first;
  for (const std::vector<experiment::StepRecord>& rank : run.steps) {
    for (const experiment::StepRecord& step : rank) {
      first = std::min(first.value_or(step.begins), step.begins);
    }
  }
  return first;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RecordWriter>> RecordWriter::Make(const experiment::Lab& lab,
                                                                 const std::string& parent) {
  ASSIGN_OR_RETURN(report::RecordFolder folder,
                   report::RecordFolder::Create(parent, lab, std::chrono::system_clock::now()));
  auto writer = std::unique_ptr<RecordWriter>(new RecordWriter(lab, std::move(folder)));
  RETURN_IF_ERROR(writer->folder_.WriteEnvironment(lab, writer->summary_));
  return writer;
}

RecordWriter::RecordWriter(const experiment::Lab& lab, report::RecordFolder folder)
    : lab_(lab), folder_(std::move(folder)) {
  summary_.lab = lab.name;
  summary_.question = lab.question;
  summary_.lab_text = lab.text;
  summary_.lab_hash = lab.hash;
  summary_.build = kBuild;
  summary_.environment = Environment();
}

experiment::CellRun RecordWriter::Describe(const experiment::Cell& cell, int repeat,
                                           double time_scale) {
  experiment::CellRun run;
  run.part = cell.part;
  run.cell = cell.index;
  run.repeat = repeat;
  run.time_scale = time_scale;
  run.predicted_seconds = PredictedSeconds(cell.spec);
  run.predicted_exposed_seconds = PredictedExposedSeconds(cell.spec);
  run.latency_share = LatencyShare(cell.spec);
  run.work = worker::WorkOf(cell.spec);
  run.cores = static_cast<int>(std::thread::hardware_concurrency());
  return run;
}

absl::Status RecordWriter::Add(RecordedRun recorded, bool whole) {
  const std::string& part = lab_.parts.at(static_cast<std::size_t>(recorded.run.part)).name;
  RETURN_IF_ERROR(folder_.AppendSteps(part, recorded.run));
  RETURN_IF_ERROR(WriteDetails(recorded));
  if (!whole) {
    return absl::OkStatus();
  }
  finished_.push_back(std::move(recorded.run));
  summary_.cells = experiment::Summarize(lab_, finished_);
  return folder_.WriteSummary(summary_);
}

absl::Status RecordWriter::WriteDetails(const RecordedRun& recorded) {
  const experiment::CellRun& run = recorded.run;
  const std::string& part = lab_.parts.at(static_cast<std::size_t>(run.part)).name;
  const bool traced = CellOf(lab_, run).spec.train.trace;
  for (std::size_t rank = 0; traced && rank < recorded.traces.size(); ++rank) {
    RETURN_IF_ERROR(folder_.WriteTrace(part, run.cell, run.repeat,
                                       {.rank = static_cast<Rank>(rank),
                                        .world_size = static_cast<int>(recorded.traces.size()),
                                        .transport = CellOf(lab_, run).spec.Transport(),
                                        .time_scale = run.time_scale,
                                        .origin = FirstStepOf(run),
                                        .steps = run.steps[rank],
                                        .spans = recorded.traces[rank].spans,
                                        .collectives = recorded.traces[rank].collectives,
                                        .counters = recorded.traces[rank].counters}));
  }
  for (const report::InjectionLine& line : recorded.injections) {
    RETURN_IF_ERROR(folder_.AppendInjection(part, run.cell, run.repeat, line));
  }
  return absl::OkStatus();
}

absl::Status RecordWriter::Finish(int exit_code, const std::string& verdict) {
  summary_.cells = experiment::Summarize(lab_, finished_);
  summary_.sentences = report::WriteSentences(lab_, summary_.cells);
  summary_.expectations = experiment::EvaluateExpectations(lab_, summary_.cells);
  summary_.complete = exit_code == 0;
  summary_.verdict = verdict;
  summary_.exit_code = exit_code;
  const auto failed =
      std::count_if(summary_.expectations.begin(), summary_.expectations.end(),
                    [](const experiment::ExpectationOutcome& outcome) { return outcome.failed(); });
  if (failed > 0 && exit_code == 0) {
    summary_.exit_code = 1;
    summary_.verdict =
        absl::StrFormat("%d of %d expectations failed", failed, summary_.expectations.size());
  }
  RETURN_IF_ERROR(folder_.WriteSummary(summary_));
  return report::RenderRecord(folder_.path()).status();
}

}  // namespace ranklab::cli
