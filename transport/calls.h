// Requests of this endpoint that one peer has not answered. Pure, like Mailbox.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "transport/requests.h"
#include "transport/wire.h"

namespace ranklab::transport {

struct AnsweredCall {
  AnsweredFn done;
  absl::StatusOr<ReplyHeader> answer;
};

// A call ends when its answer is known and the wire has let go of its body; the call that ends is
// returned.
class Calls {
 public:
  // Errors: FailedPrecondition, a call with this id is pending. `done` is then left alone.
  absl::Status Begin(std::uint64_t id, Landing reply, AnsweredFn& done);

  // Where the bytes of this answer go; null data if nobody waits for them.
  Landing LandingFor(const MessageHeader& reply) const;

  std::optional<AnsweredCall> Sent(std::uint64_t id, const absl::Status& status);

  // Requires: Waits(reply.request.id).
  std::optional<AnsweredCall> Answered(const MessageHeader& reply);
  bool Waits(std::uint64_t id) const;

  // The answer of all others is `why`.
  std::vector<AnsweredCall> End(const absl::Status& why);

 private:
  struct Pending {
    Landing reply;
    AnsweredFn done;
    bool sent = false;
    std::optional<absl::StatusOr<ReplyHeader>> answer;
  };
  using Table = std::map<std::uint64_t, Pending>;  // by request id

  std::optional<AnsweredCall> TakeIfEnded(Table::iterator call);

  Table pending_;
};

}  // namespace ranklab::transport
