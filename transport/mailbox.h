// Posted messages between this endpoint and one peer: which receive a message belongs to, what is
// kept for a receive that is not posted yet, and what is held until the peer gives credit. Pure: no
// wire, no loop; callbacks are returned, never run.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "core/event_loop.h"
#include "transport/buffer_pool.h"
#include "transport/transport.h"

namespace ranklab::transport {

// A callback whose time has come.
struct Completion {
  DoneFn done;
  absl::Status status;
};

// Messages of equal envelopes match in order if all of them are small or all are large.
class Mailbox {
 public:
  struct Limits {
    Bytes eager_limit = 0;  // larger messages need a credit each
    Bytes kept_bytes = 0;   // of small messages without a receive
  };
  struct Outgoing {
    Envelope envelope;
    Payload payload;
    DoneFn done;
  };
  struct Arrival {
    Landing landing;
    std::uint64_t token = 0;
  };

  // `pool` must outlive this.
  Mailbox(const Limits& limits, BufferPool& pool) : limits_(limits), pool_(pool) {}

  // Sending: the message that may leave now, if any; otherwise it is held, or the credit kept.
  std::optional<Outgoing> Offer(Outgoing message);
  std::optional<Outgoing> TakeCredit(const Envelope& envelope);

  std::vector<Envelope> Held() const;

  // Whether a receive of `size` bytes has to tell the sender that it is posted.
  bool NeedsCredit(Bytes size) const { return size > limits_.eager_limit; }

  // The peer still holds a large message of this envelope. True: a small receive waits for it,
  // which gave no credit; give it now. The two disagree, and only the message itself can show it.
  bool HeldByPeer(const Envelope& envelope);

  // Receiving. Post returns the receive if its message is already here, in its landing.
  std::optional<Completion> Post(const Envelope& envelope, Landing into, DoneFn done);

  // A message of `size` bytes begins to arrive. A message of another size than its receive has
  // nowhere to land. Errors: InvalidArgument, a large message that nobody gave credit for;
  // ResourceExhausted, too many bytes wait for their receives.
  absl::StatusOr<Arrival> Accept(const Envelope& envelope, Bytes size);

  // Its last byte is here. The receive it belongs to, if one is posted.
  std::optional<Completion> Arrived(std::uint64_t token);

  // Nothing more comes from this peer or goes to it: ends what is pending with `why`. Messages that
  // arrived whole can still be received.
  std::vector<Completion> End(const absl::Status& why);

  Bytes kept_bytes() const { return kept_bytes_; }

 private:
  struct Receive {
    Landing into;
    DoneFn done;
    bool credited = false;  // the peer may send its message, however large
  };
  struct Message {
    Envelope envelope;
    Bytes size = 0;
    Buffer buffer;                   // of a message without a receive at its first byte
    std::optional<Receive> receive;  // once posted
    bool kept = false;               // counted in kept_bytes_
  };

  Completion Finish(Message message);

  Limits limits_;
  BufferPool& pool_;
  std::multimap<Envelope, Outgoing> held_;
  std::map<Envelope, int> credits_;
  std::multimap<Envelope, Receive> posted_;
  std::multimap<Envelope, Message> whole_;     // arrived, without a receive
  std::map<std::uint64_t, Message> arriving_;  // by token: in the order of their first bytes
  std::uint64_t next_token_ = 1;
  Bytes kept_bytes_ = 0;
};

}  // namespace ranklab::transport
