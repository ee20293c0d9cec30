#include "transport/mailbox.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/check.h"
#include "core/status.h"

namespace ranklab::transport {
namespace {

// Removes and returns the oldest entry of `key`.
template <typename Map>
std::optional<typename Map::mapped_type> TakeFirst(Map& map, const Envelope& key) {
  const auto found = map.lower_bound(key);
  if (found == map.end() || found->first != key) {
    return std::nullopt;
  }
  std::optional<typename Map::mapped_type> taken(std::move(found->second));
  map.erase(found);
  return taken;
}

}  // namespace

std::optional<Mailbox::Outgoing> Mailbox::Offer(Outgoing message) {
  if (message.payload.size <= limits_.eager_limit) {
    return message;
  }
  const auto credit = credits_.find(message.envelope);
  if (credit == credits_.end()) {
    const Envelope envelope = message.envelope;
    held_.emplace(envelope, std::move(message));
    return std::nullopt;
  }
  if (--credit->second == 0) {
    credits_.erase(credit);
  }
  return message;
}

std::optional<Mailbox::Outgoing> Mailbox::TakeCredit(const Envelope& envelope) {
  std::optional<Outgoing> released = TakeFirst(held_, envelope);
  if (!released) {
    ++credits_[envelope];
  }
  return released;
}

std::vector<Envelope> Mailbox::Held() const {
  std::vector<Envelope> held;
  for (const auto& [envelope, message] : held_) {
    held.push_back(envelope);
  }
  return held;
}

bool Mailbox::HeldByPeer(const Envelope& envelope) {
  const auto [first, last] = posted_.equal_range(envelope);
  const auto small =
      std::find_if(first, last, [](const auto& entry) { return !entry.second.credited; });
  if (small == last) {
    return false;
  }
  small->second.credited = true;
  return true;
}

std::optional<Completion> Mailbox::Post(const Envelope& envelope, Landing into, DoneFn done) {
  if (std::optional<Message> message = TakeFirst(whole_, envelope)) {
    message->receive = Receive{into, std::move(done)};
    return Finish(*std::move(message));
  }
  const auto arriving = std::find_if(arriving_.begin(), arriving_.end(), [&](const auto& entry) {
    return entry.second.envelope == envelope && !entry.second.receive;
  });
  if (arriving != arriving_.end()) {
    arriving->second.receive = Receive{into, std::move(done)};
  } else {
    posted_.emplace(envelope, Receive{into, std::move(done), NeedsCredit(into.size)});
  }
  return std::nullopt;
}

absl::StatusOr<Mailbox::Arrival> Mailbox::Accept(const Envelope& envelope, Bytes size) {
  Message message{.envelope = envelope, .size = size, .buffer = {}, .receive = {}, .kept = false};
  Landing landing{nullptr, size};
  message.receive = TakeFirst(posted_, envelope);
  if (message.receive) {
    if (message.receive->into.size == size) {
      landing = message.receive->into;
    }
  } else if (size > limits_.eager_limit) {
    return InvalidArgument("a message of %d bytes came without credit; the eager limit is %d", size,
                           limits_.eager_limit);
  } else if (kept_bytes_ + size > limits_.kept_bytes) {
    return ResourceExhausted(
        "%d bytes wait for receives that nobody posted, and %d more came; at "
        "most %d are kept",
        kept_bytes_, size, limits_.kept_bytes);
  } else {
    message.buffer = pool_.Take(size);
    message.kept = true;
    kept_bytes_ += size;
    landing.data = message.buffer.data();
  }
  const std::uint64_t token = next_token_++;
  arriving_.emplace(token, std::move(message));
  return Arrival{landing, token};
}

std::optional<Completion> Mailbox::Arrived(std::uint64_t token) {
  const auto found = arriving_.find(token);
  RANKLAB_CHECK(found != arriving_.end(), "token %d", token);
  Message message = std::move(found->second);
  arriving_.erase(found);
  if (message.receive) {
    return Finish(std::move(message));
  }
  const Envelope envelope = message.envelope;
  whole_.emplace(envelope, std::move(message));
  return std::nullopt;
}

Completion Mailbox::Finish(Message message) {
  Receive& receive = *message.receive;
  absl::Status status;
  if (receive.into.size != message.size) {
    status = InvalidArgument(
        "the message has %d bytes, its receive expects %d (group %d, sequence %d, lane %d, part "
        "%d)",
        message.size, receive.into.size, message.envelope.group, message.envelope.sequence,
        message.envelope.lane, message.envelope.part);
  } else if (message.buffer.data() != nullptr && receive.into.data != nullptr) {
    std::memcpy(receive.into.data, message.buffer.data(), static_cast<std::size_t>(message.size));
  }
  if (message.kept) {
    kept_bytes_ -= message.size;
  }
  pool_.Give(std::move(message.buffer));
  return {std::move(receive.done), std::move(status)};
}

std::vector<Completion> Mailbox::End(const absl::Status& why) {
  std::vector<Completion> ended;
  for (auto& [token, message] : arriving_) {
    if (message.receive) {
      ended.push_back({std::move(message.receive->done), why});
    }
    if (message.kept) {
      kept_bytes_ -= message.size;
    }
  }
  for (auto& [envelope, receive] : posted_) {
    ended.push_back({std::move(receive.done), why});
  }
  for (auto& [envelope, message] : held_) {
    ended.push_back({std::move(message.done), why});
  }
  arriving_.clear();
  posted_.clear();
  held_.clear();
  credits_.clear();
  return ended;
}

}  // namespace ranklab::transport
