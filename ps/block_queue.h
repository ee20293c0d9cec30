#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include <absl/functional/any_invocable.h>
#include <absl/status/status.h>

#include "core/event_loop.h"

namespace ranklab::ps {

// Long work, cut into blocks of which each is a task of the loop, so that messages, timers and
// heartbeats run in between. Jobs run one after another in the order queued. A job's `done` runs in
// the task of its last block, before the next job begins. Jobs that are left when the queue goes
// never run.
class BlockQueue {
 public:
  explicit BlockQueue(EventLoop& loop);
  ~BlockQueue();

  // Runs run_block(0), ..., run_block(blocks - 1), then `done`. The first error ends the job.
  // Never inline, not even with no blocks.
  void Enqueue(std::int64_t blocks, absl::AnyInvocable<absl::Status(std::int64_t)> run_block,
               DoneFn done);

  // A job has begun and not ended.
  bool mid_job() const { return next_block_ > 0; }
  std::int64_t jobs_queued() const { return jobs_queued_; }
  std::int64_t jobs_done() const { return jobs_done_; }
  Nanos busy() const { return busy_; }  // in blocks, on the loop's clock

 private:
  struct Job {
    std::int64_t blocks = 0;
    absl::AnyInvocable<absl::Status(std::int64_t)> run_block;
    DoneFn done;
  };

  void PostNext();
  void RunNext();

  EventLoop& loop_;
  std::deque<Job> jobs_;
  std::int64_t next_block_ = 0;  // of the first job
  std::int64_t jobs_queued_ = 0;
  std::int64_t jobs_done_ = 0;
  Nanos busy_{};
  std::shared_ptr<BlockQueue*> self_;  // null inside once the queue is gone: tasks may outlive it
};

}  // namespace ranklab::ps
