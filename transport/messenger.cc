#include "transport/messenger.h"

#include <string>
#include <utility>

#include <absl/status/status.h>

#include "core/check.h"
#include "core/status.h"
#include "transport/messenger_core.h"

namespace ranklab::transport {
namespace {

constexpr std::size_t kErrorLength = 1024;

// A message that is held this long may be held for ever: its sender says so, and says it again
// after twice the time, until everybody's deadline has passed.
constexpr Nanos kFirstTold = std::chrono::seconds(1);
constexpr Nanos kLastTold = std::chrono::seconds(64);

void IgnoreSent(absl::Status) {}

absl::Status FromPeer(Endpoint from, const absl::Status& received) {
  return Annotate(received, "from " + NameOf(from));
}

}  // namespace

// What a service is handed to answer with. Answers Internal if it is forgotten.
class Messenger::AnswerSlot {
 public:
  AnswerSlot(const std::shared_ptr<Core>& core, Endpoint to, std::uint64_t id)
      : core_(core), loop_(&core->loop()), to_(to), id_(id) {}
  AnswerSlot(AnswerSlot&& other) noexcept = default;
  AnswerSlot& operator=(AnswerSlot&&) = delete;
  AnswerSlot(const AnswerSlot&) = delete;
  AnswerSlot& operator=(const AnswerSlot&) = delete;
  ~AnswerSlot() {
    if (const std::shared_ptr<Core> core = core_.lock()) {
      core->Answer(to_, id_, Internal("%s dropped the request", NameOf(core->self())), {},
                   IgnoreSent);
    }
  }

  void operator()(absl::StatusOr<ReplyHeader> reply, Payload body, DoneFn sent) {
    const std::shared_ptr<Core> core = std::exchange(core_, {}).lock();
    if (core == nullptr) {
      loop_->Post([sent = std::move(sent)]() mutable {
        sent(Aborted("the request is answered already, or its messenger is gone"));
      });
      return;
    }
    core->Answer(to_, id_, std::move(reply), body, std::move(sent));
  }

 private:
  std::weak_ptr<Core> core_;  // empty once answered, or moved from
  EventLoop* loop_;
  Endpoint to_;
  std::uint64_t id_;
};

Messenger::Core::Peer& Messenger::Core::PeerAt(Endpoint endpoint) {
  const auto found = peers_.find(endpoint);
  if (found != peers_.end()) {
    return found->second;
  }
  return peers_
      .emplace(endpoint, Peer(Mailbox({.eager_limit = options_.eager_limit,
                                       .kept_bytes = options_.eager_bytes_per_peer},
                                      pool_)))
      .first->second;
}

void Messenger::Core::PostDone(DoneFn done, absl::Status status) {
  loop_.Post(
      [done = std::move(done), status = std::move(status)]() mutable { done(std::move(status)); });
}

void Messenger::Core::Send(Endpoint to, const Envelope& envelope, Payload payload, DoneFn done) {
  RANKLAB_CHECK(envelope.generation == options_.generation, "generation %d, not %d",
                envelope.generation, options_.generation);
  Peer& peer = PeerAt(to);
  if (absl::Status why = WhyNot(peer); !why.ok()) {
    PostDone(std::move(done), std::move(why));
    return;
  }
  if (auto message = peer.mail.Offer({envelope, payload, std::move(done)})) {
    Transmit(to, *std::move(message));
    return;
  }
  ++held_;
  if (held_timer_ == TimerId::kNone) {
    TellHeldAfter(kFirstTold);  // usually the credit comes long before
  }
}

void Messenger::Core::NoLongerHeld(std::size_t messages) {
  held_ -= messages;
  if (held_ == 0) {
    loop_.Cancel(std::exchange(held_timer_, TimerId::kNone));
  }
}

void Messenger::Core::TellHeldAfter(Nanos pause) {
  held_timer_ = loop_.RunAt(loop_.Now() + pause, [weak = weak_from_this(), pause] {
    if (const std::shared_ptr<Core> self = weak.lock()) {
      self->held_timer_ = TimerId::kNone;
      self->TellHeld(pause);
    }
  });
}

void Messenger::Core::TellHeld(Nanos paused) {
  for (const auto& [endpoint, peer] : peers_) {
    for (const Envelope& envelope : peer.mail.Held()) {
      SendControl(endpoint, MessageKind::kHeld, envelope);
    }
  }
  if (held_ > 0 && paused < kLastTold) {
    TellHeldAfter(2 * paused);
  }
}

void Messenger::Core::SendControl(Endpoint to, MessageKind kind, const Envelope& envelope) {
  MessageHeader header;
  header.kind = kind;
  header.envelope = envelope;
  wire_.Send(to, header, {}, IgnoreSent);
}

void Messenger::Core::Transmit(Endpoint to, Mailbox::Outgoing message) {
  MessageHeader header;
  header.kind = MessageKind::kPosted;
  header.envelope = message.envelope;
  header.size = message.payload.size;
  wire_.Send(to, header, message.payload, std::move(message.done));
}

void Messenger::Core::Recv(Endpoint from, const Envelope& envelope, Landing into, DoneFn done) {
  RANKLAB_CHECK(envelope.generation == options_.generation, "generation %d, not %d",
                envelope.generation, options_.generation);
  Peer& peer = PeerAt(from);
  if (!aborted_.ok()) {
    PostDone(std::move(done), aborted_);
    return;
  }
  if (auto received = peer.mail.Post(envelope, into, std::move(done))) {
    PostDone(std::move(received->done), FromPeer(from, received->status));
    return;
  }
  if (!peer.lost.ok()) {  // and the message had not arrived before
    End(peer, peer.lost);
    return;
  }
  if (peer.mail.NeedsCredit(into.size)) {
    SendControl(from, MessageKind::kCredit, envelope);
  }
}

void Messenger::Core::Call(Endpoint to, const RequestHeader& request, Payload body, Landing reply,
                           AnsweredFn done) {
  Peer& peer = PeerAt(to);
  absl::Status why = WhyNot(peer);
  if (why.ok()) {
    why = peer.calls.Begin(request.id, reply, done);
  }
  if (!why.ok()) {
    PostAnswered({std::move(done), std::move(why)});
    return;
  }
  MessageHeader header;
  header.kind = MessageKind::kRequest;
  header.envelope.generation = options_.generation;
  header.request = request;
  header.size = body.size;
  wire_.Send(to, header, body,
             [self = shared_from_this(), to, id = request.id](const absl::Status& status) {
               if (auto ended = self->PeerAt(to).calls.Sent(id, status)) {
                 self->PostAnswered(*std::move(ended));
               }
             });
}

void Messenger::Core::PostAnswered(AnsweredCall call) {
  loop_.Post([call = std::move(call)]() mutable { call.done(std::move(call.answer)); });
}

void Messenger::Core::Answer(Endpoint to, std::uint64_t id, absl::StatusOr<ReplyHeader> reply,
                             Payload body, DoneFn sent) {
  if (absl::Status why = WhyNot(PeerAt(to)); !why.ok()) {
    PostDone(std::move(sent), std::move(why));
    return;
  }
  MessageHeader header;
  header.kind = MessageKind::kReply;
  header.envelope.generation = options_.generation;
  header.request.id = id;
  if (reply.ok()) {
    header.reply = *reply;
    header.size = body.size;
  } else {
    header.status = static_cast<std::int32_t>(reply.status().code());
    header.error = MessageOf(reply.status()).substr(0, kErrorLength);
    body = {};
  }
  wire_.Send(to, header, body, std::move(sent));
}

absl::StatusOr<WireSink::Acceptance> Messenger::Core::Accept(Endpoint from,
                                                             const MessageHeader& header) {
  if (OtherGeneration(header)) {
    return Acceptance{{nullptr, header.size}, 0};
  }
  Peer& peer = PeerAt(from);
  switch (header.kind) {
    case MessageKind::kPosted: {
      ASSIGN_OR_RETURN(const Mailbox::Arrival arrival,
                       peer.mail.Accept(header.envelope, header.size));
      return Acceptance{arrival.landing, arrival.token};
    }
    case MessageKind::kHeld:
    case MessageKind::kCredit:
      return Acceptance{{nullptr, header.size}, 0};
    case MessageKind::kRequest:
      return AcceptRequest(from, header);
    case MessageKind::kReply:
      return Acceptance{peer.calls.LandingFor(header), 0};
  }
  return InvalidArgument("message of unknown kind %d", static_cast<int>(header.kind));
}

absl::StatusOr<WireSink::Acceptance> Messenger::Core::AcceptRequest(Endpoint from,
                                                                    const MessageHeader& header) {
  if (header.size > options_.request_limit) {
    return InvalidArgument("a request of %d bytes; at most %d are allowed", header.size,
                           options_.request_limit);
  }
  const std::uint64_t token = next_token_++;
  ArrivingRequest& request = PeerAt(from).requests[token];
  if (body_landing) {
    request.landing = body_landing(from, header.request, header.size);
  }
  if (request.landing.data == nullptr) {
    request.buffer = pool_.Take(header.size);
    request.landing = {request.buffer.data(), header.size};
  }
  RANKLAB_CHECK(request.landing.size == header.size);
  return Acceptance{request.landing, token};
}

void Messenger::Core::Arrived(Endpoint from, const MessageHeader& header, std::uint64_t token) {
  if (OtherGeneration(header)) {
    ++dropped_messages_;
    return;
  }
  switch (header.kind) {
    case MessageKind::kPosted:
      if (auto received = PeerAt(from).mail.Arrived(token)) {
        received->done(FromPeer(from, received->status));
      }
      return;
    case MessageKind::kHeld:
      if (PeerAt(from).mail.HeldByPeer(header.envelope)) {
        SendControl(from, MessageKind::kCredit, header.envelope);
      }
      return;
    case MessageKind::kCredit:
      if (auto released = PeerAt(from).mail.TakeCredit(header.envelope)) {
        NoLongerHeld(1);
        Transmit(from, *std::move(released));
      }
      return;
    case MessageKind::kRequest:
      ArrivedRequest(from, header, token);
      return;
    case MessageKind::kReply:
      ArrivedReply(from, header);
      return;
  }
}

void Messenger::Core::ArrivedRequest(Endpoint from, const MessageHeader& header,
                                     std::uint64_t token) {
  const std::shared_ptr<Core> self = shared_from_this();
  Peer& peer = PeerAt(from);
  const auto found = peer.requests.find(token);
  RANKLAB_CHECK(found != peer.requests.end(), "token %d", token);
  ArrivingRequest request = std::move(found->second);
  peer.requests.erase(found);
  if (serve) {
    serve(from, header.request, {request.landing.data, header.size},
          AnswerSlot(self, from, header.request.id));
  } else {
    Answer(from, header.request.id, Unimplemented("%s serves no requests", NameOf(self_)), {},
           IgnoreSent);
  }
  pool_.Give(std::move(request.buffer));
}

void Messenger::Core::ArrivedReply(Endpoint from, const MessageHeader& header) {
  Calls& calls = PeerAt(from).calls;
  if (!calls.Waits(header.request.id)) {
    ++dropped_messages_;
  } else if (auto ended = calls.Answered(header)) {
    PostAnswered(*std::move(ended));
  }
}

void Messenger::Core::End(Peer& peer, const absl::Status& why) {
  NoLongerHeld(peer.mail.Held().size());
  for (Completion& ended : peer.mail.End(why)) {
    PostDone(std::move(ended.done), std::move(ended.status));
  }
  for (auto& [token, request] : peer.requests) {
    pool_.Give(std::move(request.buffer));
  }
  peer.requests.clear();
  for (AnsweredCall& ended : peer.calls.End(why)) {
    PostAnswered(std::move(ended));
  }
}

void Messenger::Core::Lost(Endpoint endpoint, absl::Status why) {
  Peer& peer = PeerAt(endpoint);
  if (!aborted_.ok() || !peer.lost.ok()) {
    return;
  }
  peer.lost = Unavailable("%s is lost: %s", NameOf(endpoint), MessageOf(why));
  End(peer, peer.lost);  // posts, so that on_lost runs before
  if (on_lost) {
    on_lost(endpoint, why);
  }
}

void Messenger::Core::Abort(const absl::Status& reason) {
  RANKLAB_CHECK(!reason.ok());
  if (!aborted_.ok()) {
    return;
  }
  aborted_ = reason;
  wire_.Abort(reason);  // first: after it no landing is touched
  for (auto& [endpoint, peer] : peers_) {
    End(peer, reason);
  }
}

Messenger::Messenger(EventLoop& loop, Wire& wire, const MessengerOptions& options)
    : core_(std::make_shared<Core>(loop, wire, options)) {
  wire.Deliver(*core_);
}

Messenger::~Messenger() { core_->Abort(Aborted("the messenger was closed")); }

Endpoint Messenger::self() const { return core_->self(); }

void Messenger::Send(Endpoint to, const Envelope& envelope, Payload payload, DoneFn done) {
  core_->Send(to, envelope, payload, std::move(done));
}

void Messenger::Recv(Endpoint from, const Envelope& envelope, Landing into, DoneFn done) {
  core_->Recv(from, envelope, into, std::move(done));
}

void Messenger::Abort(absl::Status reason) { core_->Abort(reason); }

void Messenger::Call(Endpoint to, const RequestHeader& header, Payload body, Landing reply,
                     AnsweredFn done) {
  core_->Call(to, header, body, reply, std::move(done));
}

void Messenger::Serve(RequestFn handler, BodyLandingFn landing) {
  core_->serve = std::move(handler);
  core_->body_landing = std::move(landing);
}

void Messenger::OnLost(absl::AnyInvocable<void(Endpoint, const absl::Status&)> lost) {
  core_->on_lost = std::move(lost);
}

std::int64_t Messenger::dropped_messages() const { return core_->dropped_messages(); }

}  // namespace ranklab::transport
