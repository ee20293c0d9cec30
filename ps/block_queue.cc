#include "ps/block_queue.h"

#include <utility>

#include "core/check.h"

namespace ranklab::ps {

BlockQueue::BlockQueue(EventLoop& loop) : loop_(loop), self_(std::make_shared<BlockQueue*>(this)) {}

BlockQueue::~BlockQueue() { *self_ = nullptr; }

void BlockQueue::Enqueue(std::int64_t blocks,
                         absl::AnyInvocable<absl::Status(std::int64_t)> run_block, DoneFn done) {
  RANKLAB_CHECK(blocks >= 0, "%d blocks", blocks);
  ++jobs_queued_;
  jobs_.push_back({blocks, std::move(run_block), std::move(done)});
  if (jobs_.size() == 1) {
    PostNext();
  }
}

void BlockQueue::PostNext() {
  loop_.Post([self = self_] {
    if (*self != nullptr) {
      (*self)->RunNext();
    }
  });
}

void BlockQueue::RunNext() {
  Job& job = jobs_.front();
  absl::Status status;
  if (next_block_ < job.blocks) {
    const Nanos begins = loop_.Now();
    status = job.run_block(next_block_++);
    busy_ += loop_.Now() - begins;
  }
  if (status.ok() && next_block_ < job.blocks) {
    PostNext();
    return;
  }
  DoneFn done = std::move(job.done);
  next_block_ = 0;
  ++jobs_done_;
  // `done` may queue more: the ended job keeps its place until then, so that only one task is out.
  const std::shared_ptr<BlockQueue*> self = self_;
  done(std::move(status));
  if (*self == nullptr) {
    return;
  }
  jobs_.pop_front();
  if (!jobs_.empty()) {
    PostNext();
  }
}

}  // namespace ranklab::ps
