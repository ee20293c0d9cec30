#include "cli/run_recorder.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/status.h"
#include "worker/record_messages.h"

namespace ranklab::cli {
namespace {

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

CounterSample SampleOf(const v1::CounterSample& sample, Rank rank, Step step) {
  return {.rank = rank,
          .name = sample.name(),
          .step = step,
          .value = sample.value(),
          .when = Nanos(sample.when_ns())};
}

// Until there is more than the rank's trace file takes. `bytes`: of what is kept, in the file.
void KeepSpans(const v1::StepRow& row, Rank rank, worker::TraceBuffer::Taken& trace,
               std::size_t& bytes) {
  if (bytes > report::kTraceLimit) {
    return;
  }
  for (const v1::Span& span : row.spans()) {
    trace.spans.push_back(SpanOf(span, rank, row.step()));
    bytes += report::LeastTraceBytes(trace.spans.back());
  }
  for (const v1::CollectiveSpan& span : row.collectives()) {
    trace.collectives.push_back(SpanOf(span, rank, row.step()));
    bytes += report::LeastTraceBytes(trace.collectives.back());
  }
  for (const v1::CounterSample& sample : row.counters()) {
    trace.counters.push_back(SampleOf(sample, rank, row.step()));
    bytes += report::LeastTraceBytes(trace.counters.back());
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunRecorder>> RunRecorder::Make(const experiment::Lab& lab,
                                                               const std::string& parent) {
  std::unique_ptr<RunRecorder> recorder(new RunRecorder(lab));
  ASSIGN_OR_RETURN(recorder->writer_, RecordWriter::Make(recorder->lab_, parent));
  recorder->folder_ = recorder->writer_->folder();
  return recorder;
}

void RunRecorder::OnEvent(const v1::RunEvent& event) {
  switch (event.kind_case()) {
    case v1::RunEvent::kPlanned:
      OnPlanned(event.planned());
      return;
    case v1::RunEvent::kStarted:
      OnStarted(event.started());
      return;
    case v1::RunEvent::kRows:
      OnRows(event.rows());
      return;
    case v1::RunEvent::kInjection:
      OnInjection(event.injection());
      return;
    case v1::RunEvent::kEnded:
      OnEnded(event.ended());
      return;
    default:
      return;
  }
}

void RunRecorder::OnPlanned(const v1::Planned& planned) {
  plan_ = planned;
  for (int i = 0; i < planned.workers_size(); ++i) {
    experiment::Cell* cell = CellAt(i);
    if (cell != nullptr && planned.workers(i) > 0) {
      cell->spec.cluster.workers = planned.workers(i);
    }
  }
}

experiment::Cell* RunRecorder::CellAt(int flat_index) {
  for (experiment::Part& part : lab_.parts) {
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
  open.recorded.run = RecordWriter::Describe(*cell, started.repeat(), started.time_scale());
  open.free_since = Nanos(started.at_ns());
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
  if (open.recorded.traces.size() <= rank) {
    open.recorded.traces.resize(rank + 1);
    open.recorded.run.steps.resize(rank + 1);
    open.trace_bytes.resize(rank + 1);
  }
  worker::TraceBuffer::Taken& trace = open.recorded.traces[rank];
  for (const v1::StepRow& row : rows.rows()) {
    KeepSpans(row, rows.rank(), trace, open.trace_bytes[rank]);
    open.recorded.run.steps[rank].push_back(worker::FromMessage(row));
    if (open.recorded.run.steps[rank].size() == 1) {
      const Nanos begins = open.recorded.run.steps[rank].front().begins;
      open.recorded.run.start_up = std::max(open.recorded.run.start_up, begins - open.free_since);
    }
    steps_done_ += rank == 0 ? 1 : 0;
  }
}

void RunRecorder::OnInjection(const v1::InjectionLog& log) {
  const auto found = open_.find(log.generation());
  if (found == open_.end()) {
    return;
  }
  const Role role = log.role() == v1::ROLE_WORKER ? Role::kWorker : Role::kServer;
  found->second.recorded.injections.push_back({.member = NameOf(Endpoint{role, log.rank()}),
                                               .step = log.applied().step(),
                                               .asked = log.applied().asked(),
                                               .applied = log.applied().applied(),
                                               .ends = log.applied().ends()});
}

void RunRecorder::OnEnded(const v1::CellEnded& ended) {
  const auto found = open_.find(ended.generation());
  if (found == open_.end()) {
    return;
  }
  Open open = std::move(found->second);
  open_.erase(found);
  // A worker that the others went on without has no figures: it ends with nothing.
  std::set<Rank> lost;
  for (const v1::SurvivedLoss& loss : ended.losses()) {
    if (loss.role() == v1::ROLE_WORKER) {
      lost.insert(loss.rank());
    }
  }
  for (Rank rank = 0; rank < ended.workers_size(); ++rank) {
    if (lost.contains(rank)) {
      continue;
    }
    open.recorded.run.workers.push_back(worker::WorkerRecordOf(ended.workers(rank), rank));
  }
  for (Rank rank = 0; rank < ended.servers_size(); ++rank) {
    open.recorded.run.servers.push_back(
        worker::ServerRecordOf(ended.servers(rank), rank, ended.workers_size()));
  }
  // A cell that broke off leaves its steps and traces, but no figures.
  any_ended_ = any_ended_ || ended.code() == 0;
  Write(std::move(open.recorded), /*whole=*/ended.code() == 0);
}

void RunRecorder::Write(RecordedRun recorded, bool whole) {
  disk_.Post([this, recorded = std::move(recorded), whole]() mutable {
    if (written_.ok()) {
      written_ = writer_->Add(std::move(recorded), whole);
    }
  });
}

absl::Status RunRecorder::AddMore(absl::FunctionRef<absl::Status(RecordWriter&)> add) {
  absl::Status added;
  disk_.RunAndWait([&] { added = add(*writer_); });
  return added;
}

absl::Status RunRecorder::Finish(int exit_code, const std::string& verdict) {
  // What was under way when the run broke off is evidence too.
  for (auto& [generation, open] : open_) {
    Write(std::move(open.recorded), /*whole=*/false);
  }
  open_.clear();
  disk_.RunAndWait([this, exit_code, &verdict] {
    // Judged and summed up even where the disk is full.
    written_.Update(writer_->Finish(exit_code, verdict));
  });
  return written_;
}

std::string RunRecorder::Current() const { return current_; }

std::string RunRecorder::Place() const {
  if (open_.empty()) {
    return any_ended_ ? "between two cells" : "before the first cell";
  }
  const Open& open = open_.rbegin()->second;
  const std::string cell = absl::StrFormat(
      "%s cell %d", lab_.parts[static_cast<std::size_t>(open.recorded.run.part)].name,
      open.recorded.run.cell);
  Step done = 0;
  for (const std::vector<experiment::StepRecord>& rank : open.recorded.run.steps) {
    done = std::max(done, rank.empty() ? 0 : rank.back().step);
  }
  return done == 0 ? "before the first step of " + cell
                   : absl::StrFormat(
                         "in step %d of %s",
                         std::min(done + 1, std::max(done, open.cell->spec.train.steps)), cell);
}

}  // namespace ranklab::cli
