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
  // Waits until the coordinator answers. Errors: DeadlineExceeded, with the address.
  static absl::StatusOr<std::unique_ptr<LabClient>> Connect(const std::string& address,
                                                            Nanos timeout);
  ~LabClient();

  // Calls `on_event`, on this thread, for each event until the verdict, which is the last one.
  // Returns when the stream ends. One lab at a time.
  // Errors: Unavailable, the coordinator was lost in mid-run: its connection closed, or it fell
  // silent for 5 s; Cancelled, by Cancel; ResourceExhausted, another lab is running;
  // FailedPrecondition, another build.
  absl::Status RunLab(const v1::RunLabRequest& request,
                      absl::FunctionRef<void(const v1::RunEvent&)> on_event);

  // Ends the running lab, or the next one before it begins; the coordinator aborts it. From any
  // thread; not from a signal handler (take a self-pipe).
  void Cancel();

  // Errors: the coordinator's; Unavailable or DeadlineExceeded, it did not answer within 10 s.
  absl::StatusOr<v1::InjectReply> Inject(const v1::InjectRequest& request);
  absl::StatusOr<v1::StatusReply> Status();

 private:
  class Core;
  explicit LabClient(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

}  // namespace ranklab::coordinator
