#include "cli/run_recorder.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>
#include <utility>

#include <sys/utsname.h>
#include <unistd.h>

#include "cli/build_id.h"
#include "core/status.h"
#include "experiment/expectation.h"
#include "experiment/summarize.h"
#include "report/sentences.h"
#include "report/web/render_record.h"
#include "worker/predict.h"
#include "worker/record_messages.h"

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
  return {{"cores", std::to_string(std::thread::hardware_concurrency())},
          {"kernel", std::string(name.sysname) + " " + name.release},
          {"machine", name.machine},
          {"processor", ProcessorName()},
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

Span SpanOf(const v1::Span& span, Rank rank, Step step) {
  return {.rank = rank,
          .track = static_cast<Track>(span.track()),
          .name = span.name(),
          .step = step,
          .begins = Nanos(span.begins_ns()),
          .ends = Nanos(span.ends_ns()),
          .bytes = span.bytes(),
          .server = span.has_server() ? span.server() : -1,
          .bucket = span.has_bucket() ? span.bucket() : -1};
}

CollectiveSpan SpanOf(const v1::CollectiveSpan& span, Rank rank, Step step) {
  return {.rank = rank,
          .group = span.group(),
          .sequence = span.sequence(),
          .algorithm = span.algorithm(),
          .step = step,
          .bucket = span.bucket(),
          .bytes = span.bytes(),
          .entered = Nanos(span.entered_ns()),
          .first_byte_in = Nanos(span.first_byte_in_ns()),
          .last_byte_out = Nanos(span.last_byte_out_ns()),
          .left = Nanos(span.left_ns())};
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunRecorder>> RunRecorder::Make(const experiment::Lab& lab,
                                                               const std::string& parent) {
  ASSIGN_OR_RETURN(report::RecordFolder folder,
                   report::RecordFolder::Create(parent, lab, std::chrono::system_clock::now()));
  auto recorder = std::unique_ptr<RunRecorder>(new RunRecorder(lab, std::move(folder)));
  RETURN_IF_ERROR(recorder->folder_.WriteEnvironment(lab, recorder->summary_));
  return recorder;
}

RunRecorder::RunRecorder(const experiment::Lab& lab, report::RecordFolder folder)
    : lab_(lab), folder_(std::move(folder)) {
  summary_.lab = lab.name;
  summary_.question = lab.question;
  summary_.lab_text = lab.text;
  summary_.lab_hash = lab.hash;
  summary_.build = kBuild;
  summary_.environment = Environment();
}

absl::Status RunRecorder::OnEvent(const v1::RunEvent& event) {
  switch (event.kind_case()) {
    case v1::RunEvent::kPlanned:
      plan_ = event.planned();
      return absl::OkStatus();
    case v1::RunEvent::kStarted:
      OnStarted(event.started());
      return absl::OkStatus();
    case v1::RunEvent::kRows:
      OnRows(event.rows());
      return absl::OkStatus();
    case v1::RunEvent::kInjection:
      if (const auto open = open_.find(event.injection().generation()); open != open_.end()) {
        open->second.injections.push_back(event.injection());
      }
      return absl::OkStatus();
    case v1::RunEvent::kEnded:
      return OnEnded(event.ended());
    default:
      return absl::OkStatus();
  }
}

const experiment::Cell* RunRecorder::CellAt(int flat_index) const {
  for (const experiment::Part& part : lab_.parts) {
    const auto size = static_cast<int>(part.cells.size());
    if (flat_index >= 0 && flat_index < size) {
      return &part.cells[static_cast<std::size_t>(flat_index)];
    }
    flat_index -= size;
  }
  return nullptr;
}

void RunRecorder::OnStarted(const v1::CellStarted& started) {
  const experiment::Cell* cell = CellAt(started.cell());
  if (cell == nullptr) {
    return;
  }
  Open& open = open_[started.generation()];
  open.cell = cell;
  open.run.part = cell->part;
  open.run.cell = cell->index;
  open.run.repeat = started.repeat();
  open.run.time_scale = started.time_scale();
  open.free_since = Nanos(started.at_ns());
  open.run.predicted_seconds = PredictedSeconds(cell->spec);
  open.run.predicted_exposed_seconds = PredictedExposedSeconds(cell->spec);
  open.run.cores = static_cast<int>(std::thread::hardware_concurrency());
  current_ = absl::StrFormat("%s %d/%d: %s on %s, %d workers",
                             lab_.parts[static_cast<std::size_t>(cell->part)].name, started.run(),
                             plan_.runs(), cell->spec.ExchangeName(), cell->spec.fabric.preset,
                             cell->spec.cluster.workers);
}

void RunRecorder::OnRows(const v1::MemberRows& rows) {
  const auto found = open_.find(rows.generation());
  if (found == open_.end() || rows.rank() < 0 || rows.rank() > 100'000) {
    return;
  }
  Open& open = found->second;
  const auto rank = static_cast<std::size_t>(rows.rank());
  if (open.rows.size() <= rank) {
    open.rows.resize(rank + 1);
    open.run.steps.resize(rank + 1);
  }
  for (const v1::StepRow& row : rows.rows()) {
    open.rows[rank].push_back(row);
    open.run.steps[rank].push_back(worker::FromMessage(row));
    if (open.run.steps[rank].size() == 1) {
      const Nanos begins = open.run.steps[rank].front().begins;
      open.run.start_up = std::max(open.run.start_up, begins - open.free_since);
    }
    steps_done_ += rank == 0 ? 1 : 0;
  }
}

absl::Status RunRecorder::OnEnded(const v1::CellEnded& ended) {
  const auto found = open_.find(ended.generation());
  if (found == open_.end()) {
    return absl::OkStatus();
  }
  Open open = std::move(found->second);
  open_.erase(found);
  for (Rank rank = 0; rank < ended.workers_size(); ++rank) {
    open.run.workers.push_back(worker::WorkerRecordOf(ended.workers(rank), rank));
  }
  for (Rank rank = 0; rank < ended.servers_size(); ++rank) {
    open.run.servers.push_back(
        worker::ServerRecordOf(ended.servers(rank), rank, ended.workers_size()));
  }
  const std::string& part = lab_.parts[static_cast<std::size_t>(open.run.part)].name;
  RETURN_IF_ERROR(folder_.AppendSteps(part, open.run));
  RETURN_IF_ERROR(WriteTraces(open));
  // A cell that broke off leaves its steps and traces, but no figures.
  if (ended.code() != 0) {
    return absl::OkStatus();
  }
  finished_.push_back(std::move(open.run));
  return WriteSummary();
}

absl::Status RunRecorder::WriteTraces(const Open& open) {
  const std::string& part = lab_.parts[static_cast<std::size_t>(open.run.part)].name;
  for (std::size_t rank = 0; rank < open.rows.size(); ++rank) {
    report::RankTrace trace{.rank = static_cast<Rank>(rank),
                            .world_size = static_cast<int>(open.rows.size()),
                            .transport = open.cell->spec.Transport(),
                            .time_scale = open.run.time_scale,
                            .steps = open.run.steps[rank]};
    for (const v1::StepRow& row : open.rows[rank]) {
      for (const v1::Span& span : row.spans()) {
        trace.spans.push_back(SpanOf(span, trace.rank, row.step()));
      }
      for (const v1::CollectiveSpan& span : row.collectives()) {
        trace.collectives.push_back(SpanOf(span, trace.rank, row.step()));
      }
    }
    RETURN_IF_ERROR(folder_.WriteTrace(part, open.run.cell, open.run.repeat, trace));
  }
  for (const v1::InjectionLog& log : open.injections) {
    RETURN_IF_ERROR(folder_.AppendInjection(
        part, open.run.cell, open.run.repeat,
        {.member = NameOf(
             Endpoint{log.role() == v1::ROLE_WORKER ? Role::kWorker : Role::kServer, log.rank()}),
         .step = log.applied().step(),
         .asked = log.applied().asked(),
         .applied = log.applied().applied(),
         .ends = log.applied().ends()}));
  }
  return absl::OkStatus();
}

absl::Status RunRecorder::WriteSummary() {
  summary_.cells = experiment::Summarize(lab_, finished_);
  return folder_.WriteSummary(summary_);
}

absl::Status RunRecorder::Finish(int exit_code, const std::string& verdict) {
  // What was under way when the run broke off is evidence too.
  for (auto& [generation, open] : open_) {
    const std::string& part = lab_.parts[static_cast<std::size_t>(open.run.part)].name;
    RETURN_IF_ERROR(folder_.AppendSteps(part, open.run));
    RETURN_IF_ERROR(WriteTraces(open));
  }
  open_.clear();
  summary_.cells = experiment::Summarize(lab_, finished_);
  summary_.sentences = report::WriteSentences(lab_, summary_.cells);
  summary_.expectations = experiment::EvaluateExpectations(lab_, summary_.cells);
  summary_.complete = exit_code == 0;
  summary_.verdict = verdict;
  summary_.exit_code = exit_code;
  const auto failed =
      std::count_if(summary_.expectations.begin(), summary_.expectations.end(),
                    [](const experiment::ExpectationOutcome& outcome) { return !outcome.held; });
  if (failed > 0 && exit_code == 0) {
    summary_.exit_code = 1;
    summary_.verdict =
        absl::StrFormat("%d of %d expectations failed", failed, summary_.expectations.size());
  }
  RETURN_IF_ERROR(folder_.WriteSummary(summary_));
  return report::RenderRecord(folder_.path()).status();
}

std::string RunRecorder::Current() const { return current_; }

std::string RunRecorder::Place() const {
  if (open_.empty()) {
    return finished_.empty() ? "before the first cell" : "between two cells";
  }
  const Open& open = open_.rbegin()->second;
  const std::string cell = absl::StrFormat(
      "%s cell %d", lab_.parts[static_cast<std::size_t>(open.run.part)].name, open.run.cell);
  Step done = 0;
  for (const std::vector<experiment::StepRecord>& rank : open.run.steps) {
    done = std::max(done, rank.empty() ? 0 : rank.back().step);
  }
  return done == 0 ? "before the first step of " + cell
                   : absl::StrFormat(
                         "in step %d of %s",
                         std::min(done + 1, std::max(done, open.cell->spec.train.steps)), cell);
}

}  // namespace ranklab::cli
