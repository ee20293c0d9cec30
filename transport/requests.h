// Requests that a service answers when it can: the parameter server's wire. Rides on the same
// connections as Transport, and is shaped and simulated like it.
#pragma once

#include <cstdint>
#include <utility>

#include <absl/functional/any_invocable.h>
#include <absl/status/statusor.h>

#include "core/event_loop.h"
#include "transport/transport.h"

namespace ranklab::transport {

// A retry carries the same id, so the service can count it once.
struct RequestHeader {
  std::uint32_t generation = 0;
  std::uint32_t method = 0;  // of the service: push, pull, ...
  std::uint64_t id = 0;      // unique for its sender
  Step step = 0;
  std::int64_t begin = 0;  // element range it speaks of
  std::int64_t end = 0;
  double weight = 0.0;     // push: samples or tokens of the step on this worker
  bool ends_step = false;  // push: the last of this worker's step on this server
  bool overflow = false;   // with ends_step: this worker saw Inf or NaN
};

struct ReplyHeader {
  Step clock = 0;            // steps of the slowest worker that are in what was read
  std::int64_t version = 0;  // optimizer steps applied
  bool skipped = false;      // the step was skipped for overflow
};
using AnsweredFn = absl::AnyInvocable<void(absl::StatusOr<ReplyHeader>)>;

class Requester {
 public:
  virtual ~Requester() = default;

  // Sends `body`, lands the answer's bytes in `reply` (whose size they must have; may be empty).
  // Errors (through `done`): the service's own; Unavailable; Aborted; DeadlineExceeded.
  virtual void Call(Endpoint to, const RequestHeader& header, Payload body, Landing reply,
                    AnsweredFn done) = 0;
};

// Runs once. The bytes must stay valid until `sent` runs.
using AnswerFn = absl::AnyInvocable<void(absl::StatusOr<ReplyHeader>, Payload, DoneFn sent)>;

// Called on the loop for each request with its whole body, which is valid only during the call.
// Clients keep bodies small (about 1 MiB): under the alpha-beta model a message in pieces costs
// what it costs whole, because alpha does not occupy a port.
using RequestFn = absl::AnyInvocable<void(Endpoint from, const RequestHeader& header, Payload body,
                                          AnswerFn answer)>;

// Asked on the loop when a request's header is here: where its body goes, `size` bytes of the
// service's own that stay valid until the handler has seen the request or the peer is lost. Null
// data: the transport's own buffer. Bodies of one peer land, and are handled, in order.
using BodyLandingFn =
    absl::AnyInvocable<Landing(Endpoint from, const RequestHeader& header, Bytes size)>;

class Responder {
 public:
  virtual ~Responder() = default;
  virtual void Serve(RequestFn handler, BodyLandingFn landing) = 0;
  void Serve(RequestFn handler) { Serve(std::move(handler), nullptr); }
};

}  // namespace ranklab::transport
