// A member that answers as a worker or server would, without training: over a real session.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <absl/synchronization/mutex.h>

#include "coordinator/member_session.h"
#include "core/status.h"
#include "transport/tcp/live_loop.h"

namespace ranklab::coordinator {

class FakeMember {
 public:
  struct Options {
    std::string coordinator{};
    Role role = Role::kWorker;
    std::string build = "b";
    std::optional<Rank> wanted_rank{};
    bool stays_in_training = false;  // says its first row and no more
    std::uint64_t incarnation = 0;
  };
  struct End {
    absl::Status why;
    int exit_code = 0;
  };

  FakeMember(transport::LiveLoop& loop, Options options)
      : loop_(loop), options_(std::move(options)) {
    SessionOptions session{
        .coordinator = options_.coordinator, .join = {}, .join_timeout = std::chrono::seconds(10)};
    session.join.set_role(options_.role == Role::kWorker ? v1::ROLE_WORKER : v1::ROLE_SERVER);
    session.join.set_host("127.0.0.1");
    session.join.set_grpc_port(1);
    session.join.set_build(options_.build);
    session.join.set_incarnation(options_.incarnation);
    if (options_.wanted_rank) {
      session.join.set_wanted_rank(*options_.wanted_rank);
    }
    loop_.RunAndWait([&] {
      session_ = std::make_unique<MemberSession>(loop_, std::move(session), MakeEvents());
    });
  }

  ~FakeMember() { Kill(); }

  // The process is gone: no goodbye.
  void Kill() {
    loop_.RunAndWait([this] { session_.reset(); });
  }

  bool AwaitJoined() {
    return Await([this] { return joined_; });
  }
  bool AwaitInjection() {
    return Await([this] { return injections_ > 0; });
  }
  bool AwaitTraining() {
    return Await([this] { return training_; });
  }
  bool AwaitAbort() {
    return Await([this] { return aborted_; });
  }
  // Nothing within 20 s: nullopt.
  std::optional<End> AwaitEnd() {
    if (!Await([this] { return end_.has_value(); })) {
      return std::nullopt;
    }
    absl::MutexLock lock(&mutex_);
    return end_;
  }

  MemberSession& session() { return *session_; }

 private:
  template <typename Predicate>
  bool Await(Predicate predicate) {
    absl::MutexLock lock(&mutex_);
    return mutex_.AwaitWithTimeout(absl::Condition(&predicate), absl::Seconds(20));
  }

  template <typename Change>
  void Note(Change change) {
    absl::MutexLock lock(&mutex_);
    change();
  }

  SessionEvents MakeEvents() {
    return {.joined = [this](std::uint64_t) { Note([this] { joined_ = true; }); },
            .assigned = [this](const v1::Assignment& assignment) { OnAssigned(assignment); },
            .go = [this](std::uint32_t) { OnGo(); },
            .released = [this](const v1::BarrierRelease&) { OnReleased(); },
            .inject = [this](const v1::Injection& injection) { OnInject(injection); },
            .aborted = [this](const v1::AbortGeneration&) { Note([this] { aborted_ = true; }); },
            .gone = [](const v1::MemberGone&) {},
            .ended =
                [this](absl::Status why, int exit_code) {
                  Note([&] { end_ = End{.why = std::move(why), .exit_code = exit_code}; });
                }};
  }

  void OnAssigned(const v1::Assignment& assignment) {
    assignment_ = assignment;
    v1::MemberMessage message;
    message.mutable_ready()->set_generation(assignment.generation());
    message.mutable_ready()->set_lab_hash(assignment.lab_hash());
    session_->Send(std::move(message));
  }

  void OnGo() {
    v1::MemberMessage message;
    if (options_.role == Role::kServer) {
      return SendResult();
    }
    session_->SetProgress(assignment_.generation(), 1, "forward");
    message.mutable_steps()->set_generation(assignment_.generation());
    message.mutable_steps()->add_rows()->set_step(1);
    session_->Send(std::move(message));
    Note([this] { training_ = true; });
    if (!options_.stays_in_training) {
      message.mutable_arrival()->set_generation(assignment_.generation());
      message.mutable_arrival()->set_barrier("trained");
      session_->Send(std::move(message));
    }
  }

  void OnReleased() { SendResult(); }

  void SendResult() {
    v1::MemberMessage message;
    message.mutable_result()->set_generation(assignment_.generation());
    message.mutable_result()->set_param_hash("cafe");
    session_->Send(std::move(message));
  }

  void OnInject(const v1::Injection& injection) {
    v1::MemberMessage message;
    message.mutable_applied()->set_generation(assignment_.generation());
    message.mutable_applied()->set_injection(injection.id());
    message.mutable_applied()->set_asked(injection.text());
    session_->Send(std::move(message));
    Note([this] { ++injections_; });
  }

  transport::LiveLoop& loop_;
  Options options_;
  std::unique_ptr<MemberSession> session_;
  v1::Assignment assignment_;  // on the loop

  absl::Mutex mutex_;
  bool joined_ = false;
  bool training_ = false;
  bool aborted_ = false;
  int injections_ = 0;
  std::optional<End> end_;
};

}  // namespace ranklab::coordinator
