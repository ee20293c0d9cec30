// A member of the pool, worker or parameter server: takes assignments from the coordinator, one
// after the other, and runs each on its own thread.
//
//   loop thread                               member's thread (Serve)
//     session events -> GenerationInbox         waits for an assignment, runs it (MemberWork),
//     (go, barriers, abort, injections)         talks back through the session
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>

#include "coordinator/member_session.h"
#include "core/event_loop.h"
#include "protos/coordinator.pb.h"
#include "worker/generation_inbox.h"
#include "worker/network.h"

namespace ranklab::worker {

class Member;

// What a member does with an assignment: from reading the lab to the result. On the member's
// thread; returns early when the inbox is aborted.
class MemberWork {
 public:
  virtual ~MemberWork() = default;
  virtual void Run(Member& member, GenerationInbox& inbox) = 0;
};

class Member {
 public:
  // All must outlive it.
  Member(EventLoop& loop, const NetworkPorts& ports, MemberWork& work);

  // Before the first assignment.
  void UseSession(coordinator::MemberSession& session) { session_ = &session; }

  // Session events; on the loop.
  void Assigned(const v1::Assignment& assignment);
  void Go(std::uint32_t generation);
  void Released(const v1::BarrierRelease& release);
  void Inject(const v1::Injection& injection);
  void Aborted(const v1::AbortGeneration& abort);
  void Gone(const v1::MemberGone& gone);
  void End();  // no more assignments: Serve returns

  // Blocks: runs assignments until End.
  void Serve();

  // What a member says, from its own thread.
  void Send(v1::MemberMessage message);
  void SendReady(const GenerationInbox& inbox, const absl::Status& status,
                 const std::string& lab_hash);
  // Fills in generation, status and clock, and sends.
  void SendResult(const GenerationInbox& inbox, const absl::Status& status, v1::CellResult result);
  void SendArrival(const GenerationInbox& inbox, const std::string& barrier,
                   const std::string& token);
  void SetProgress(const GenerationInbox& inbox, Step step, const std::string& phase);
  // Lost peers are evidence for the coordinator, which decides.
  void ReportLostPeers(const GenerationInbox& inbox, Network& network);

  EventLoop& loop() { return loop_; }
  const NetworkPorts& ports() const { return ports_; }
  Nanos clock_offset() const { return session_->clock_offset(); }

  // What it is doing now, for Describe; from any thread.
  struct Activity {
    std::uint32_t generation = 0;  // 0: idle in the pool
    Rank rank = -1;
    Step step = 0;
    std::string phase = "idle";
  };
  Activity activity() const;

 private:
  std::shared_ptr<GenerationInbox> NextAssignment();
  std::shared_ptr<GenerationInbox> InboxOf(std::uint32_t generation);

  EventLoop& loop_;
  const NetworkPorts ports_;
  MemberWork& work_;
  coordinator::MemberSession* session_ = nullptr;
  mutable absl::Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<std::shared_ptr<GenerationInbox>> pending_ ABSL_GUARDED_BY(mutex_);
  std::map<std::uint32_t, std::shared_ptr<GenerationInbox>> inboxes_ ABSL_GUARDED_BY(mutex_);
  Activity activity_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ranklab::worker
