// A process's session with the coordinator: joins the pool, keeps the clock aligned, beats, and
// hands work to the process. Reconnection is the process's business: a session that ends is over.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <absl/functional/any_invocable.h>
#include <absl/status/status.h>

#include "core/event_loop.h"
#include "core/units.h"
#include "protos/coordinator.pb.h"

namespace ranklab::coordinator {

struct SessionOptions {
  std::string coordinator;  // "host:port"
  v1::JoinRequest join;
  std::string clock{};   // host_clock.h; where the coordinator has the same, the offset is 0
  Nanos join_timeout{};  // until Joined has come; DeadlineExceeded names the address
  Nanos heartbeat_every = std::chrono::milliseconds(200);
  // Of the coordinator's silence, until an assignment says what its lab has.
  Nanos suspect_after = std::chrono::seconds(5);
};

// Called on the loop. All of them are required.
struct SessionEvents {
  absl::AnyInvocable<void(std::uint64_t member)> joined;
  absl::AnyInvocable<void(const v1::Assignment&)> assigned;
  absl::AnyInvocable<void(std::uint32_t generation)> go;
  absl::AnyInvocable<void(const v1::BarrierRelease&)> released;
  absl::AnyInvocable<void(const v1::Injection&)> inject;
  absl::AnyInvocable<void(const v1::AbortGeneration&)> aborted;
  absl::AnyInvocable<void(const v1::MemberGone&)> gone;
  // Once, last: dismissed with an exit code (Ok), or the coordinator was lost (Unavailable),
  // refused us (AlreadyExists, FailedPrecondition), or could not be reached (DeadlineExceeded).
  absl::AnyInvocable<void(absl::Status why, int exit_code)> ended;
};

class MemberSession {
 public:
  MemberSession(EventLoop& loop, SessionOptions options, SessionEvents events);
  ~MemberSession();  // on the loop, or once the loop has stopped; cancels the call and waits for it

  void Send(v1::MemberMessage message);  // on the loop

  // From any thread; travels with the next heartbeat, which comes early when the step is new.
  void SetProgress(std::uint32_t generation, Step step, std::string phase);

  // coordinator's clock = loop's clock + offset, within +- residual (half the best round trip).
  // Measured again and again; from any thread.
  Nanos clock_offset() const;
  Nanos clock_residual() const;

 private:
  class Core;
  std::shared_ptr<Core> core_;
};

}  // namespace ranklab::coordinator
