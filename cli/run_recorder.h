// From a lab's event stream to its record: gathers what the members report, run by run. Files are
// written on a thread of the recorder's own: whoever reads the events waits for no disk, and so the
// coordinator neither.
#pragma once

#include <map>
#include <memory>
#include <string>

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>

#include "cli/record_writer.h"
#include "experiment/lab_spec.h"
#include "experiment/run_record.h"
#include "protos/coordinator.pb.h"
#include "transport/tcp/live_loop.h"

namespace ranklab::cli {

class RunRecorder {
 public:
  // Makes the record's folder below `parent`. Errors: Unavailable, it cannot be made.
  static absl::StatusOr<std::unique_ptr<RunRecorder>> Make(const experiment::Lab& lab,
                                                           const std::string& parent);

  void OnEvent(const v1::RunEvent& event);

  // The last word, after all that is still to be written: judges what was run, writes summary,
  // table and page. Errors: Unavailable, the record could not be written, now or earlier.
  absl::Status Finish(int exit_code, const std::string& verdict);

  // What is not in the stream, behind all that is; before Finish. Errors: `add`'s.
  absl::Status AddMore(absl::FunctionRef<absl::Status(RecordWriter&)> add);

  // After Finish.
  const experiment::RunSummary& summary() const { return writer_->summary(); }
  const std::string& folder() const { return folder_; }

  // Of Planned, once it has come; runs done so far; what runs now.
  const v1::Planned& plan() const { return plan_; }
  std::int64_t steps_done() const { return steps_done_; }
  std::string Current() const;
  std::string Place() const;  // for a verdict: "in step 14 of long cell 0"

 private:
  explicit RunRecorder(const experiment::Lab& lab) : lab_(lab) {}

  // A cell's repeat while it runs.
  struct Open {
    const experiment::Cell* cell = nullptr;
    RecordedRun recorded;
    std::vector<std::size_t> trace_bytes;  // [rank]: what the spans kept take in the file, at least
    Nanos free_since{};                    // of the cluster, in the coordinator's clock
  };

  experiment::Cell* CellAt(int flat_index);
  void OnPlanned(const v1::Planned& planned);
  void OnStarted(const v1::CellStarted& started);
  void OnRows(const v1::MemberRows& rows);
  void OnInjection(const v1::InjectionLog& log);
  void OnEnded(const v1::CellEnded& ended);
  void Write(RecordedRun recorded, bool whole);

  experiment::Lab lab_;  // its `workers: all` are numbers once it is planned
  std::string folder_;
  v1::Planned plan_;
  std::map<std::uint32_t, Open> open_;  // by generation
  std::int64_t steps_done_ = 0;
  std::string current_;
  bool any_ended_ = false;
  std::unique_ptr<RecordWriter> writer_;  // on the disk's thread until Finish has returned
  absl::Status written_;                  // likewise: the first error
  transport::LiveLoop disk_;              // last: ends before what it uses
};

}  // namespace ranklab::cli
