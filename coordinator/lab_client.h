// What `ranklab run`, `inject` and `status` say to a coordinator. Blocking, for a command's thread.
#pragma once

#include <memory>
#include <string>

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>

#include "core/units.h"
#include "protos/coordinator.pb.h"

namespace ranklab::coordinator {

class LabClient {
 public:
  explicit LabClient(const std::string& address);  // "host:port"; does not wait
  ~LabClient();

  // The same, and AwaitAnswer.
  static absl::StatusOr<std::unique_ptr<LabClient>> Connect(const std::string& address,
                                                            Nanos timeout);

  // Waits until the coordinator answers. Errors: DeadlineExceeded, with the address; Cancelled, by
  // Cancel.
  absl::Status AwaitAnswer(Nanos timeout);

  // Calls `on_event`, on this thread, for each event until the verdict, which is the last one.
  // Returns when the stream ends. One lab at a time.
  // Errors: Unavailable, the coordinator was lost in mid-run: its connection closed, or it fell
  // silent for `suspect_after`; Cancelled, by Cancel, or by a coordinator whose events were not
  // read; ResourceExhausted, another lab is running; FailedPrecondition, another build.
  absl::Status RunLab(const v1::RunLabRequest& request, Nanos suspect_after,
                      absl::FunctionRef<void(const v1::RunEvent&)> on_event);

  // Ends AwaitAnswer and the running lab, or the next one before it begins; the coordinator aborts
  // it. From any thread; not from a signal handler (take a self-pipe).
  void Cancel();

  // Tells what the lab came to, in this client's judgement. Errors: as Inject.
  absl::Status Conclude(int exit_code, const std::string& text);

  // Errors: the coordinator's; Unavailable or DeadlineExceeded, it did not answer within 10 s.
  absl::StatusOr<v1::InjectReply> Inject(const v1::InjectRequest& request);
  absl::StatusOr<v1::StatusReply> Status();

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace ranklab::coordinator
