#include "ps/block_queue.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/status.h"
#include "sim/virtual_loop.h"

namespace ranklab::ps {
namespace {

class BlockQueueTest : public testing::Test {
 protected:
  void Enqueue(const std::string& name, std::int64_t blocks) {
    queue_->Enqueue(
        blocks,
        [this, name](std::int64_t block) {
          log_.push_back(name + std::to_string(block));
          return absl::OkStatus();
        },
        [this, name](const absl::Status& status) {
          log_.push_back(name + (status.ok() ? " done" : " failed"));
        });
  }

  sim::VirtualLoop loop_;
  std::optional<BlockQueue> queue_{std::in_place, loop_};
  std::vector<std::string> log_;
};

using Lines = std::vector<std::string>;

TEST_F(BlockQueueTest, RunsJobsInOrderAndLeavesTheLoopBetweenBlocks) {
  Enqueue("a", 2);
  Enqueue("b", 0);
  Enqueue("c", 1);
  loop_.Post([this] { log_.push_back("heartbeat"); });
  EXPECT_TRUE(log_.empty());
  loop_.Run();
  EXPECT_EQ(log_, (Lines{"a0", "heartbeat", "a1", "a done", "b done", "c0", "c done"}));
  EXPECT_EQ(queue_->jobs_done(), 3);
}

TEST_F(BlockQueueTest, AnErrorEndsItsJobOnly) {
  queue_->Enqueue(
      3, [](std::int64_t) { return Internal("broken"); },
      [this](const absl::Status& status) { log_.push_back(MessageOf(status)); });
  Enqueue("b", 1);
  loop_.Run();
  EXPECT_EQ(log_, (Lines{"broken", "b0", "b done"}));
}

TEST_F(BlockQueueTest, DoneMayQueueMore) {
  queue_->Enqueue(
      1, [](std::int64_t) { return absl::OkStatus(); },
      [this](const absl::Status&) { Enqueue("next", 1); });
  Enqueue("b", 1);
  loop_.Run();
  EXPECT_EQ(log_, (Lines{"b0", "b done", "next0", "next done"}));
}

TEST_F(BlockQueueTest, NothingRunsOnceItIsGone) {
  Enqueue("a", 2);
  loop_.RunOne();
  queue_.reset();
  loop_.Run();
  EXPECT_EQ(log_, Lines{"a0"});
}

}  // namespace
}  // namespace ranklab::ps
