// The bottom of the transports: whole messages between two endpoints, for one generation. A wire
// knows bytes and connections; matching, credit and requests are the Messenger's. TCP, gRPC, one
// process and the simulator are wires; ShapedWire makes any of them behave like a path of a fabric.
//
//   Transport / Requester / Responder          what collectives and the parameter server use
//        Messenger                             matching, eager limit and credit, request ids
//        ShapedWire (fabric/link_model)        when a message leaves and arrives
//        Wire: TcpWire | GrpcWire | LocalWire  bytes
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <absl/functional/any_invocable.h>
#include <absl/status/status.h>

#include "core/endpoint.h"
#include "core/event_loop.h"
#include "core/units.h"
#include "transport/requests.h"
#include "transport/transport.h"

namespace ranklab::transport {

enum class MessageKind : std::uint8_t {
  kPosted,   // bytes of Transport::Send
  kCredit,   // a receive is posted: the sender may send the message of this envelope
  kRequest,  // Requester::Call
  kReply,    // its answer
  kHeld,     // a large message of this envelope has waited long for the receiver's credit
};

// What the messengers say to each other: no body, and no message of the modelled program.
constexpr bool IsControl(MessageKind kind) {
  return kind == MessageKind::kCredit || kind == MessageKind::kHeld;
}

// In front of every message's bytes, on every wire.
struct MessageHeader {
  MessageKind kind = MessageKind::kPosted;
  Envelope envelope;        // kPosted, kCredit, kHeld; its generation holds for every kind
  RequestHeader request;    // kRequest; for kReply only its id
  ReplyHeader reply;        // kReply
  std::int32_t status = 0;  // kReply: absl::StatusCode of the answer
  std::string error;        // kReply: its message, at most 1 KiB
  Bytes size = 0;           // of the body
  // Set by ShapedWire: the instant at which the first byte left the sender's modelled port, on the
  // cluster's clock. 0 on an unshaped wire.
  Nanos departs{};
  Nanos due{};  // likewise: the arrival that the sender's side allows (Passage::arrives of Depart)
};

// Whom a wire delivers to. Called on the loop.
class WireSink {
 public:
  struct Acceptance {
    Landing landing;          // of header.size bytes; data may be null if the body is not wanted
    std::uint64_t token = 0;  // handed back with Arrived
  };
  virtual ~WireSink() = default;

  // A message's header is here: where does its body go? The landing stays valid until Arrived, or
  // until Abort of the wire has returned and its sends have ended.
  // Errors: a header that makes no sense here; the wire then treats the peer as broken.
  virtual absl::StatusOr<Acceptance> Accept(Endpoint from, const MessageHeader& header) = 0;

  // The body is complete in its landing (and, on a shaped wire, its modelled time has come).
  virtual void Arrived(Endpoint from, const MessageHeader& header, std::uint64_t token) = 0;

  // The connection is gone, or what came over it is not ours. Once a peer.
  virtual void Lost(Endpoint peer, absl::Status why) = 0;
};

// Bytes that crossed one connection since Open: bodies, and all bytes with framing.
struct WireCounters {
  Bytes body_sent = 0;
  Bytes body_received = 0;
  Bytes wire_sent = 0;
  Bytes wire_received = 0;
  std::int64_t messages_sent = 0;
  std::int64_t messages_received = 0;
  bool shared_memory = false;  // through which they went
};

// All calls on the loop. Messages from one endpoint to another arrive in the order sent.
class Wire {
 public:
  virtual ~Wire() = default;

  virtual Endpoint self() const = 0;

  // Requires: called once, before the wire is ready.
  virtual void Deliver(WireSink& sink) = 0;

  // `sent` runs once the wire no longer touches the body, also after Abort: not before the kernel
  // or gRPC has let go of it. The body may be null-data (only its size travels) on LocalWire and in
  // the simulator. Errors (through `sent`): Unavailable, peer gone; Aborted.
  virtual void Send(Endpoint to, const MessageHeader& header, Payload body, DoneFn sent) = 0;

  // Ends every pending and later send with `reason`, closes connections, delivers nothing more.
  virtual void Abort(absl::Status reason) = 0;

  virtual WireCounters counters(Endpoint peer) const = 0;
};

struct WirePeer {
  Endpoint endpoint;
  std::string address;  // "host:port" of the peer's port of the same kind
};

struct WireOptions {
  Endpoint self;
  std::uint32_t generation = 0;
  std::uint64_t secret = 0;     // of the generation; a peer that does not know it is a stranger
  std::vector<WirePeer> peers;  // all this endpoint talks to, itself not among them
  Nanos deadline{};             // on the loop's clock, for all connections to stand
  bool shared_memory = false;   // bytes between processes of one host go through memory that they
                                // share, where the wire and the system can
};

// A process's listening port for one kind of wire. Lives as long as the process; makes one wire a
// generation. Of two endpoints the smaller (workers before servers, then by rank) dials.
// Strangers, wrong secrets and other generations are refused, logged and counted.
class WirePort {
 public:
  virtual ~WirePort() = default;

  virtual int port() const = 0;

  // On the loop. `ready` runs once all connections stand, or with DeadlineExceeded naming the peers
  // that are missing. A peer that dials before Open is kept waiting, at most 10 s. The wire may be
  // destroyed after Abort, once its sends have ended, on the loop.
  virtual std::unique_ptr<Wire> Open(const WireOptions& options, DoneFn ready) = 0;

  virtual std::int64_t refused_connections() const = 0;
};

}  // namespace ranklab::transport
