#pragma once

#include <thread>
#include <vector>

#include <absl/base/thread_annotations.h>
#include <absl/functional/function_ref.h>
#include <absl/synchronization/mutex.h>

namespace ranklab::compute {

// Threads that share one piece of work at a time. Idle ones sleep: workers of one machine share its
// cores, and a runtime whose threads spin for their next task takes them from its neighbours.
class ThreadTeam {
 public:
  // Requires: threads >= 1. The caller of Run is one of them.
  explicit ThreadTeam(int threads);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return static_cast<int>(threads_.size()) + 1; }

  // work(0) on the calling thread, work(1) .. work(size() - 1) on the others; returns when all
  // have. One caller at a time.
  void Run(absl::FunctionRef<void(int part)> work) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Serve(int part) ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Mutex mutex_;
  const absl::FunctionRef<void(int)>* work_ ABSL_GUARDED_BY(mutex_) = nullptr;
  int round_ ABSL_GUARDED_BY(mutex_) = 0;  // one more for each Run
  int busy_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace ranklab::compute
