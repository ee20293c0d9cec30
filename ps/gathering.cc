#include "ps/gathering.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace ranklab::ps {

Gathering::Gathering(const std::vector<Message>& messages, PulledDoneFn done, ShareFn answered)
    : done_(std::move(done)), answered_(std::move(answered)) {
  for (const Message& message : messages) {
    Awaited& of_shard = awaited_[message.shard];
    ++of_shard.messages;
    of_shard.bytes += message.bytes();
  }
}

void Gathering::Add(Rank shard, const absl::StatusOr<transport::ReplyHeader>& reply) {
  const auto of_shard = awaited_.find(shard);
  RANKLAB_CHECK(of_shard != awaited_.end(), "shard %d owes no answer", shard);
  if (!reply.ok() && first_error_.ok()) {
    first_error_ = reply.status();
  } else if (reply.ok()) {
    pulled_.clock = std::min(pulled_.clock, reply->clock);
    pulled_.version = std::min(pulled_.version, reply->version);
    pulled_.skipped = pulled_.skipped || reply->skipped;
  }
  if (--of_shard->second.messages == 0) {
    const Bytes bytes = of_shard->second.bytes;
    awaited_.erase(of_shard);
    if (reply.ok() && answered_ != nullptr) {
      answered_({.server = shard, .bytes = bytes});
    }
  }
  if (!awaited_.empty()) {
    return;
  }
  if (first_error_.ok()) {
    done_(pulled_);
  } else {
    done_(first_error_);
  }
}

}  // namespace ranklab::ps
