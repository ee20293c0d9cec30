// The coordinator on its loop: sessions, the pool, the one lab that may run. Knows streams only as
// interfaces, so that the whole of it runs on virtual time; coordinator_service.cc puts gRPC under
// it. Every call on the loop.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <absl/functional/any_invocable.h>
#include <absl/status/statusor.h>

#include "coordinator/actions.h"
#include "coordinator/conductor.h"
#include "coordinator/forecast.h"
#include "coordinator/membership.h"
#include "core/event_loop.h"
#include "core/units.h"
#include "protos/coordinator.pb.h"

namespace ranklab::coordinator {

struct CoordinatorOptions {
  std::string build;
  std::string clock{};  // host_clock.h; empty: every member aligns its own by round trips
  Nanos suspect_after = std::chrono::seconds(5);
  ForecastFn forecast;
  // Runs on the loop when the lab is over and the service was told to end with it (--once), or when
  // the pool was dismissed. Streams have ended by then, or had a second to; the lab's client, whose
  // stream ends once it has read its verdict, had 30 s after the last event that it took.
  absl::AnyInvocable<void(int exit_code)> finished;
  bool once = false;
  bool keep_pool = false;  // a loss ends the lab alone; else every session, with its exit code
};

// A call that is open. Its owner keeps it alive until it has called Ended, which it does from the
// loop's queue, never from within Send or Close.
class MemberStream {
 public:
  virtual ~MemberStream() = default;
  virtual void Send(v1::CoordinatorMessage message) = 0;
  // After what was sent. The first call counts.
  virtual void Close(absl::Status status) = 0;
};
class ClientStream {
 public:
  virtual ~ClientStream() = default;
  virtual void Send(v1::RunEvent event) = 0;
  virtual void Close(absl::Status status) = 0;
  // Close that forgets what was sent and is not on its way yet.
  virtual void Drop(absl::Status status) = 0;
  virtual Bytes waiting() const = 0;     // of events that were sent and that nobody took yet
  virtual std::string peer() const = 0;  // "ipv4:10.0.0.3:41234"
};

class ControlPlane {
 public:
  ControlPlane(EventLoop& loop, CoordinatorOptions options);
  ~ControlPlane();

  // A session: Opened, any number of messages, Ended once. Errors go to the stream, by Close:
  // InvalidArgument, the first message is not a join request, or a later one is; AlreadyExists,
  // FailedPrecondition (Membership::Join); DeadlineExceeded, no join request within 10 s.
  void Opened(MemberStream& stream);
  void Received(MemberStream& stream, v1::MemberMessage message);
  void Ended(MemberStream& stream);

  // Events until the verdict, then Close with Ok. Errors, by Close: ResourceExhausted, a lab is
  // running or its client has yet to conclude; FailedPrecondition, another build; Unavailable, shut
  // down; Cancelled, the client does not read its events.
  void RunLab(const v1::RunLabRequest& request, ClientStream& client);
  void Ended(ClientStream& client);  // also when it went away: then its lab is cancelled

  // The client's word on a complete lab that promised one (RunLabRequest.concludes): whatever ends
  // with the lab ends with this exit code. Otherwise it is only kept, for Status.
  // Errors: InvalidArgument, no exit code of the command line.
  absl::Status Conclude(const v1::ConcludeRequest& request);

  absl::StatusOr<v1::InjectReply> Inject(const v1::InjectRequest& request);
  v1::StatusReply Status() const;

  // Ends the lab, dismisses every member, ends every call and takes no new ones.
  void Shutdown(int exit_code, const std::string& reason);

 private:
  struct Session {
    MemberId member = 0;  // 0: has not joined
    Nanos join_until{};
    bool closing = false;
    bool once = false;  // ends with the lab
  };
  enum class Whom : std::uint8_t { kEverybody, kThoseWithOnce };
  // A complete lab whose client judges it; somebody ends with what it says.
  struct Concluding {
    EndLab end;
    Nanos until{};
  };

  // A client that was told the verdict and has yet to read up to it.
  struct Reading {
    ClientStream* client = nullptr;
    Bytes waiting = 0;  // when it last took something
    Nanos until{};
  };

  void Join(MemberStream& stream, Session& session, const v1::JoinRequest& request);
  void Beat(MemberId member, const v1::Heartbeat& heartbeat);
  void CloseSession(MemberStream& stream, Session& session, absl::Status status);
  void Dismiss(int exit_code, const std::string& reason, Whom whom);
  void AnnounceLosses();
  void Carry(Actions actions);
  void TellLabsClient(v1::RunEvent event);
  void End(const EndLab& end);
  bool SomebodyEndsWithTheLab() const;
  void Settle(const EndLab& end);
  void FinishOnceQuiet();
  bool ClientStillReads();
  void StartTicking();
  void ScheduleTick();
  void Tick();
  MemberStream* StreamOf(MemberId member) const;

  EventLoop& loop_;
  CoordinatorOptions options_;
  Membership membership_;
  std::map<MemberStream*, Session> sessions_;
  std::map<MemberId, MemberStream*> streams_;
  std::unique_ptr<Conductor> conductor_;
  ClientStream* client_ = nullptr;  // of the running lab
  std::optional<Reading> reading_;  // the client of the lab that is over
  bool client_concludes_ = false;
  std::string client_dropped_;  // why; its lab is still to be cancelled
  std::optional<Concluding> concluding_;
  int open_clients_ = 0;  // RunLab calls that have not ended
  TimerId tick_ = TimerId::kNone;
  std::optional<int> finishing_;  // the exit code, while streams come to their end
  Nanos finish_by_{};
  bool shut_down_ = false;
  std::string last_verdict_;
};

}  // namespace ranklab::coordinator
