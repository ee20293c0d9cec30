#include "compute/thread_team.h"

#include "core/check.h"

namespace ranklab::compute {

ThreadTeam::ThreadTeam(int threads) {
  RANKLAB_CHECK(threads >= 1, "threads %d", threads);
  for (int part = 1; part < threads; ++part) {
    threads_.emplace_back([this, part] { Serve(part); });
  }
}

ThreadTeam::~ThreadTeam() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

void ThreadTeam::Run(absl::FunctionRef<void(int part)> work) {
  if (threads_.empty()) {
    work(0);
    return;
  }
  {
    absl::MutexLock lock(&mutex_);
    RANKLAB_CHECK(busy_ == 0, "two callers at a time");
    work_ = &work;
    busy_ = size() - 1;
    ++round_;
  }
  work(0);
  const auto idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return busy_ == 0; };
  absl::MutexLock lock(&mutex_);
  // Without a deadline: it waits for arithmetic alone.
  mutex_.Await(absl::Condition(&idle));
}

void ThreadTeam::Serve(int part) {
  for (int served = 0;; ++served) {
    const absl::FunctionRef<void(int)>* work = nullptr;
    {
      const auto wanted = [this, served]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stopping_ || round_ != served;
      };
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&wanted));
      if (stopping_) {
        return;
      }
      work = work_;
    }
    (*work)(part);
    absl::MutexLock lock(&mutex_);
    --busy_;
  }
}

}  // namespace ranklab::compute
