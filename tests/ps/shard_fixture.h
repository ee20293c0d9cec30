// A shard of elements [10, 16) in blocks of 4, and short words for what is done with it.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "tests/ps/shard_bench.h"

namespace ranklab::ps {

using Values = std::vector<float>;
constexpr std::int64_t kNoBound = StalenessBound::kUnbounded;

struct Read {
  absl::Status status = Unavailable("not answered");
  Values values;
  Step clock = -1;
  std::int64_t version = -1;
  bool skipped = false;
  int runs = 0;
};

class ShardTest : public testing::Test {
 protected:
  static constexpr KeyRange kRange{10, 16};

  void Make(int workers, std::int64_t bound, Order order = Order::kArrival) {
    shard_.emplace(loop_,
                   ShardOptions{.range = kRange,
                                .worker_count = workers,
                                .bound = {bound},
                                .order = order,
                                .block_elements = 4},
                   CountingFactory());
  }

  absl::Status Push(Rank worker, Step step, KeyRange part, float value) {
    Values gradients(static_cast<std::size_t>(std::max<std::int64_t>(0, part.size())), value);
    return (*shard_)->Push(worker, step, part, Float32View(gradients));
  }
  absl::Status PushAll(Rank worker, Step step, float value) {
    return Push(worker, step, kRange, value);
  }
  absl::Status Finish(Rank worker, Step step, double weight = 1.0, bool overflow = false) {
    return (*shard_)->FinishStep(worker, step, {weight, overflow});
  }
  void PushStep(Rank worker, Step step, float value) {
    ASSERT_TRUE(PushAll(worker, step, value).ok());
    ASSERT_TRUE(Finish(worker, step).ok());
  }
  std::shared_ptr<Read> Pull(Rank worker, Step step, KeyRange part = kRange) {
    auto read = std::make_shared<Read>();
    (*shard_)->Pull(worker, step, part, [read](absl::StatusOr<PullReply> reply) {
      ++read->runs;
      read->status = reply.status();
      if (reply.ok()) {
        const auto* values = reinterpret_cast<const float*>(reply->parameters.data);
        read->values.assign(values, values + reply->parameters.element_count());
        read->clock = reply->clock;
        read->version = reply->version;
        read->skipped = reply->skipped;
      }
    });
    return read;
  }

  sim::VirtualLoop loop_;
  std::optional<HostedShard> shard_;
};

}  // namespace ranklab::ps
