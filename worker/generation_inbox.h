// What the coordinator has said about one generation: assignment, go, barriers, abort, injections.
// The loop puts in, the member's own thread waits.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <absl/base/thread_annotations.h>
#include <absl/functional/any_invocable.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>

#include "core/status.h"
#include "core/status_latch.h"
#include "experiment/scenario.h"
#include "protos/coordinator.pb.h"
#include "worker/network.h"
#include "worker/rank_faults.h"

namespace ranklab::worker {

// From any thread.
class GenerationInbox {
 public:
  explicit GenerationInbox(v1::Assignment assignment) : assignment_(std::move(assignment)) {}

  const v1::Assignment& assignment() const { return assignment_; }
  StatusLatch& go() { return go_; }
  StatusLatch& aborted() { return aborted_; }

  void Abort(const std::string& reason) {
    const absl::Status status = ranklab::Aborted("%s", reason);
    aborted_.Set(status);
    go_.Set(status);
    absl::MutexLock lock(&mutex_);
    abort_reason_ = status;
    if (network_ != nullptr) {
      network_->Abort(status);
    }
  }

  // While it lives, the network is told of an abort and the faults of injections.
  class Attachment {
   public:
    Attachment(GenerationInbox& inbox, Network& network, RankFaults* faults) : inbox_(inbox) {
      absl::MutexLock lock(&inbox_.mutex_);
      inbox_.network_ = &network;
      inbox_.faults_ = faults;
      if (!inbox_.abort_reason_.ok()) {
        network.Abort(inbox_.abort_reason_);
      }
    }
    ~Attachment() {
      absl::MutexLock lock(&inbox_.mutex_);
      inbox_.network_ = nullptr;
      inbox_.faults_ = nullptr;
    }
    Attachment(const Attachment&) = delete;
    Attachment& operator=(const Attachment&) = delete;

   private:
    GenerationInbox& inbox_;
  };

  // While it lives, `gone` runs for each member that was lost and that the others go on without,
  // also for those of before; on the loop, or in the constructor. It must not wait.
  class LossListener {
   public:
    using GoneFn = absl::AnyInvocable<void(const v1::MemberGone&)>;

    LossListener(GenerationInbox& inbox, GoneFn gone) : inbox_(inbox), gone_(std::move(gone)) {
      absl::MutexLock lock(&inbox_.mutex_);
      inbox_.listener_ = this;
      for (const v1::MemberGone& before : inbox_.gone_) {
        gone_(before);
      }
    }
    ~LossListener() {
      absl::MutexLock lock(&inbox_.mutex_);
      inbox_.listener_ = nullptr;
    }
    LossListener(const LossListener&) = delete;
    LossListener& operator=(const LossListener&) = delete;

   private:
    friend class GenerationInbox;
    GenerationInbox& inbox_;
    GoneFn gone_;
  };

  void Gone(const v1::MemberGone& gone) {
    absl::MutexLock lock(&mutex_);
    gone_.push_back(gone);
    if (listener_ != nullptr) {
      listener_->gone_(gone);
    }
  }

  // False when there is no run to disturb.
  bool Inject(std::uint64_t id, experiment::Injection injection) {
    absl::MutexLock lock(&mutex_);
    if (faults_ == nullptr) {
      return false;
    }
    faults_->Add(id, std::move(injection));
    return true;
  }

  void Release(const std::string& barrier, std::vector<std::string> tokens) {
    absl::MutexLock lock(&mutex_);
    released_.emplace(barrier, std::move(tokens));
  }

  // What the workers brought, [rank]; empty where they brought nothing.
  absl::StatusOr<std::vector<std::string>> WaitReleased(const std::string& barrier, Nanos timeout) {
    absl::MutexLock lock(&mutex_);
    const auto ended = [this, &barrier]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return !abort_reason_.ok() || released_.contains(barrier);
    };
    if (!mutex_.AwaitWithTimeout(absl::Condition(&ended), absl::Nanoseconds(timeout.count()))) {
      return DeadlineExceeded("waited %.0f s for the other workers at barrier %s",
                              static_cast<double>(timeout.count()) * 1e-9, barrier);
    }
    const auto found = released_.find(barrier);
    if (found == released_.end()) {
      return abort_reason_;
    }
    return found->second;
  }

 private:
  const v1::Assignment assignment_;
  StatusLatch go_;
  StatusLatch aborted_;
  absl::Mutex mutex_;
  absl::Status abort_reason_ ABSL_GUARDED_BY(mutex_);
  Network* network_ ABSL_GUARDED_BY(mutex_) = nullptr;
  RankFaults* faults_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::map<std::string, std::vector<std::string>> released_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::MemberGone> gone_ ABSL_GUARDED_BY(mutex_);
  LossListener* listener_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace ranklab::worker
