// From a lab's event stream to its record: gathers what the members report, keeps the folder up to
// date after every cell, and judges the expectations at the end.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "experiment/lab_spec.h"
#include "experiment/run_record.h"
#include "protos/coordinator.pb.h"
#include "report/record_folder.h"

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

  const experiment::RunSummary& summary() const { return summary_; }
  const std::string& folder() const { return folder_.path(); }

  // Of Planned, once it has come; runs done so far; what runs now.
  const v1::Planned& plan() const { return plan_; }
  std::int64_t steps_done() const { return steps_done_; }
  std::string Current() const;
  std::string Place() const;  // for a verdict: "in step 14 of long cell 0"

 private:
  RunRecorder(const experiment::Lab& lab, report::RecordFolder folder);

  // A cell's repeat while it runs.
  struct Open {
    const experiment::Cell* cell = nullptr;
    experiment::CellRun run;
    Nanos free_since{};                          // of the cluster, in the coordinator's clock
    std::vector<std::vector<v1::StepRow>> rows;  // [rank]
    std::vector<v1::InjectionLog> injections;
  };

  const experiment::Cell* CellAt(int flat_index) const;
  void OnStarted(const v1::CellStarted& started);
  void OnRows(const v1::MemberRows& rows);
  absl::Status OnEnded(const v1::CellEnded& ended);
  absl::Status WriteTraces(const Open& open);
  absl::Status WriteSummary();

  const experiment::Lab& lab_;
  report::RecordFolder folder_;
  v1::Planned plan_;
  std::map<std::uint32_t, Open> open_;  // by generation
  std::vector<experiment::CellRun> finished_;
  experiment::RunSummary summary_;
  std::int64_t steps_done_ = 0;
  std::string current_;
};

}  // namespace ranklab::cli
