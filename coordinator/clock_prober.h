// Asks the coordinator for its clock, quickly at first, then at a steady pace: keeps a member's
// clock aligned (one that is the coordinator's own needs no alignment), and is a sign of the
// coordinator's life.
#pragma once

#include <memory>
#include <string>

#include <absl/base/thread_annotations.h>
#include <absl/functional/any_invocable.h>
#include <absl/synchronization/mutex.h>
#include <grpcpp/grpcpp.h>

#include "coordinator/clock_alignment.h"
#include "core/event_loop.h"
#include "core/units.h"
#include "protos/coordinator.grpc.pb.h"

namespace ranklab::coordinator {

// On the loop, but for clock() and Await. Loop and stub must outlive the last call.
class ClockProber final : public std::enable_shared_from_this<ClockProber> {
 public:
  // `answered` runs on the loop for each answer, until Cancel.
  // `own_clock`: which clock the loop reads (host_clock.h).
  ClockProber(EventLoop& loop, v1::Coordinator::Stub& stub, std::string own_clock,
              absl::AnyInvocable<void()> answered)
      : loop_(loop),
        stub_(stub),
        own_clock_(std::move(own_clock)),
        answered_(std::move(answered)) {}

  void Begin();
  // No pause between two questions is longer: what watches for answers knows how many it may miss.
  void SetLongestPause(Nanos pause) { longest_pause_ = pause; }
  void Cancel();  // no more questions, and nothing is called any more
  void Await();   // after Cancel: until gRPC has let go of the last question

  ClockOffset clock() const;  // from any thread; zero before the first answer, and if shared

 private:
  struct Question {
    grpc::ClientContext context;
    v1::ReadClockRequest request;
    v1::ReadClockReply reply;
    Nanos asked{};
  };

  void Ask();
  void Answered(const grpc::Status& status, Nanos answered);
  void Align(Nanos answered);

  EventLoop& loop_;
  v1::Coordinator::Stub& stub_;
  std::string own_clock_;
  absl::AnyInvocable<void()> answered_;
  Nanos longest_pause_ = std::chrono::milliseconds(500);
  std::unique_ptr<Question> question_;  // at most one is under way
  ClockAlignment alignment_;
  TimerId timer_ = TimerId::kNone;
  int asked_ = 0;
  bool cancelled_ = false;

  mutable absl::Mutex mutex_;
  int under_way_ ABSL_GUARDED_BY(mutex_) = 0;  // callbacks that gRPC has not left
  ClockOffset clock_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ranklab::coordinator
