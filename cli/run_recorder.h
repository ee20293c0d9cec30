// From a lab's event stream to its record: gathers what the members report, run by run.
#pragma once

#include <map>
#include <memory>
#include <string>

#include <absl/status/statusor.h>

#include "cli/record_writer.h"
#include "experiment/lab_spec.h"
#include "experiment/run_record.h"
#include "protos/coordinator.pb.h"

namespace ranklab::cli {

class RunRecorder {
 public:
  // Makes the record's folder below `parent`. Errors: Unavailable, it cannot be made.
  static absl::StatusOr<std::unique_ptr<RunRecorder>> Make(const experiment::Lab& lab,
                                                           const std::string& parent);

  // Errors: Internal, the record cannot be written any more.
  absl::Status OnEvent(const v1::RunEvent& event);

  // The last word: judges what was run, writes summary, table and page.
  absl::Status Finish(int exit_code, const std::string& verdict);

  const experiment::RunSummary& summary() const { return writer_->summary(); }
  const std::string& folder() const { return writer_->folder(); }

  // Of Planned, once it has come; runs done so far; what runs now.
  const v1::Planned& plan() const { return plan_; }
  std::int64_t steps_done() const { return steps_done_; }
  std::string Current() const;
  std::string Place() const;  // for a verdict: "in step 14 of long cell 0"

 private:
  explicit RunRecorder(std::unique_ptr<RecordWriter> writer);

  // A cell's repeat while it runs.
  struct Open {
    const experiment::Cell* cell = nullptr;
    RecordedRun recorded;
    Nanos free_since{};  // of the cluster, in the coordinator's clock
  };

  const experiment::Cell* CellAt(int flat_index) const;
  void OnStarted(const v1::CellStarted& started);
  void OnRows(const v1::MemberRows& rows);
  void OnInjection(const v1::InjectionLog& log);
  absl::Status OnEnded(const v1::CellEnded& ended);

  const experiment::Lab& lab_;
  std::unique_ptr<RecordWriter> writer_;
  v1::Planned plan_;
  std::map<std::uint32_t, Open> open_;  // by generation
  std::int64_t steps_done_ = 0;
  std::string current_;
};

}  // namespace ranklab::cli
