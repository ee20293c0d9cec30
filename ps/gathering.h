// The answers to the messages of one call of a client.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include <absl/functional/any_invocable.h>
#include <absl/status/statusor.h>

#include "core/units.h"
#include "ps/client.h"
#include "ps/key_range.h"
#include "transport/requests.h"

namespace ranklab::ps {

using PulledDoneFn = absl::AnyInvocable<void(absl::StatusOr<Pulled>)>;

struct Message {
  Rank shard = 0;  // the server that it was cut for
  KeyRange part;
  Bytes element = 0;  // bytes of one; 0: the message has no body

  Bytes bytes() const { return part.size() * element; }
};

// Done when the last answer is here, with the first error.
class Gathering {
 public:
  Gathering(const std::vector<Message>& messages, PulledDoneFn done, ShareFn answered);

  // Requires: the shard owes an answer.
  void Add(Rank shard, const absl::StatusOr<transport::ReplyHeader>& reply);

 private:
  struct Awaited {
    std::int64_t messages = 0;
    Bytes bytes = 0;
  };

  std::map<Rank, Awaited> awaited_;  // [shard] that owes answers
  PulledDoneFn done_;
  ShareFn answered_;
  absl::Status first_error_;
  Pulled pulled_{.clock = std::numeric_limits<Step>::max(),
                 .version = std::numeric_limits<std::int64_t>::max()};
};

}  // namespace ranklab::ps
