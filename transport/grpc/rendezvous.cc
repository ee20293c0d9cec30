#include "transport/grpc/rendezvous.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <absl/strings/str_join.h>

#include "core/check.h"
#include "core/status.h"

namespace ranklab::transport {
namespace {

// After a peer that answered has ended the stream (its process restarted, its generation did not
// open in time). While nobody listens, gRPC itself keeps trying.
constexpr Nanos kRedialAfter = std::chrono::milliseconds(100);

bool IsFinal(absl::StatusCode refusal) {
  return refusal == absl::StatusCode::kPermissionDenied ||
         refusal == absl::StatusCode::kFailedPrecondition ||
         refusal == absl::StatusCode::kAlreadyExists;
}

}  // namespace

// One stream until it stands: our hello written and, where we dialed, the peer's read.
class Rendezvous::Handshake final : public StreamEvents {
 public:
  Handshake(Rendezvous& owner, const WirePeer& peer, std::shared_ptr<FrameStream> stream,
            bool dialed)
      : owner_(owner), peer_(peer), stream_(std::move(stream)), dialed_(dialed), heard_(!dialed) {
    stream_->Listen(this);
    stream_->Write({.prefix = EncodeHello({.generation = owner_.options_.generation,
                                           .secret = owner_.options_.secret,
                                           .from = owner_.options_.self,
                                           .to = peer_.endpoint}),
                    .payload = {},
                    .released = nullptr});
    if (dialed_) {
      stream_->Read();
    }
  }

  ~Handshake() override {
    if (stream_ != nullptr) {
      stream_->Listen(nullptr);
      stream_->Close(Aborted("given up"));
    }
  }

  std::shared_ptr<FrameStream> TakeStream() {
    stream_->Listen(nullptr);
    return std::move(stream_);
  }

  // Each of these may destroy the handshake as its last act.
  void OnFrame(absl::StatusOr<IncomingFrame> frame) override {
    absl::Status status = Hear(frame);
    if (!status.ok()) {
      owner_.HandshakeEnded(peer_, dialed_, status);
      return;
    }
    heard_ = true;
    JoinIfStanding();
  }
  void OnWritten() override {
    written_ = true;
    JoinIfStanding();
  }
  void OnEnded(const absl::Status& why) override { owner_.HandshakeEnded(peer_, dialed_, why); }

 private:
  absl::Status Hear(const absl::StatusOr<IncomingFrame>& frame) const {
    RETURN_IF_ERROR(Annotate(frame.status(), "its answer"));
    if (!frame->frame.hello.has_value()) {
      return absl::PermissionDeniedError("its answer is no hello");
    }
    const Hello& hello = *frame->frame.hello;
    RETURN_IF_ERROR(owner_.Examine(hello));
    if (hello.from != peer_.endpoint) {
      return FailedPrecondition("%s answered at the address of %s", NameOf(hello.from),
                                NameOf(peer_.endpoint));
    }
    return absl::OkStatus();
  }

  void JoinIfStanding() {
    if (heard_ && written_) {
      owner_.Join(peer_.endpoint);
    }
  }

  Rendezvous& owner_;
  const WirePeer peer_;
  std::shared_ptr<FrameStream> stream_;
  const bool dialed_;
  bool heard_;
  bool written_ = false;
};

Rendezvous::Rendezvous(EventLoop& loop, const WireOptions& options, DialFn dial, JoinedFn joined,
                       DoneFn ready)
    : loop_(loop),
      options_(options),
      dial_(std::move(dial)),
      joined_(std::move(joined)),
      ready_(std::move(ready)) {
  for (const WirePeer& peer : options_.peers) {
    RANKLAB_CHECK(peer.endpoint != options_.self, "%s is its own peer", NameOf(options_.self));
    RANKLAB_CHECK(missing_.emplace(peer.endpoint, peer).second, "%s twice", NameOf(peer.endpoint));
  }
  if (missing_.empty()) {
    Finish(absl::OkStatus());
    return;
  }
  deadline_ = loop_.RunAt(options_.deadline, [this] { Finish(Missing()); });
  for (const WirePeer& peer : options_.peers) {
    if (options_.self < peer.endpoint) {
      Dial(peer);
    }
  }
}

Rendezvous::~Rendezvous() { Cancel(Aborted("the wire is gone")); }

absl::Status Rendezvous::Admit(const std::shared_ptr<FrameStream>& stream, const Hello& hello) {
  RETURN_IF_ERROR(Examine(hello));
  const auto is_from = [&](const WirePeer& peer) { return peer.endpoint == hello.from; };
  const bool known = std::any_of(options_.peers.begin(), options_.peers.end(), is_from);
  if (!known || options_.self < hello.from) {
    return FailedPrecondition("%s expects no stream from %s", NameOf(options_.self),
                              NameOf(hello.from));
  }
  const auto peer = missing_.find(hello.from);
  if (peer == missing_.end()) {
    return AlreadyExists("%s has connected already, or comes too late, in generation %d",
                         NameOf(hello.from), options_.generation);
  }
  // The peer may have dialed again before we noticed that its first stream is dead.
  handshakes_.erase(hello.from);
  handshakes_[hello.from] =
      std::make_unique<Handshake>(*this, peer->second, stream, /*dialed=*/false);
  return absl::OkStatus();
}

void Rendezvous::Lost(const absl::Status& why) { Finish(why); }

void Rendezvous::Cancel(const absl::Status& reason) { Finish(reason); }

void Rendezvous::Dial(const WirePeer& peer) {
  handshakes_[peer.endpoint] =
      std::make_unique<Handshake>(*this, peer, dial_(peer.address), /*dialed=*/true);
}

void Rendezvous::DialAgainLater(const WirePeer& peer) {
  redials_[peer.endpoint] = loop_.RunAt(loop_.Now() + kRedialAfter, [this, peer] {
    redials_.erase(peer.endpoint);
    Dial(peer);
  });
}

void Rendezvous::Join(Endpoint peer) {
  const std::unique_ptr<Handshake> handshake = std::move(handshakes_.extract(peer).mapped());
  missing_.erase(peer);
  // Before `joined`: it may hand over frames that end this rendezvous.
  const bool complete = missing_.empty();
  if (complete) {
    Finish(absl::OkStatus());
  }
  joined_(peer, handshake->TakeStream());
}

void Rendezvous::HandshakeEnded(const WirePeer& peer, bool dialed, const absl::Status& why) {
  // Alive until here ends: `peer` and `why` are its own.
  const auto handshake = handshakes_.extract(peer.endpoint);
  if (!dialed) {
    return;  // it will dial again, or the deadline names it
  }
  if (IsFinal(why.code())) {
    Finish(Annotate(why, absl::StrFormat("%s at %s refused the tensor stream",
                                         NameOf(peer.endpoint), peer.address)));
    return;
  }
  DialAgainLater(peer);
}

absl::Status Rendezvous::Examine(const Hello& hello) const {
  if (hello.magic != kWireMagic) {
    return absl::PermissionDeniedError("not a ranklab tensor stream (wrong magic)");
  }
  if (hello.generation != options_.generation) {
    return FailedPrecondition("generation %d, here is generation %d", hello.generation,
                              options_.generation);
  }
  if (hello.secret != options_.secret) {
    return MakeError(absl::StatusCode::kPermissionDenied, "not the secret of generation %d",
                     options_.generation);
  }
  if (hello.to != options_.self) {
    return FailedPrecondition("meant for %s, here is %s", NameOf(hello.to), NameOf(options_.self));
  }
  return absl::OkStatus();
}

void Rendezvous::Finish(const absl::Status& status) {
  if (ready_ == nullptr) {
    return;
  }
  loop_.Cancel(std::exchange(deadline_, TimerId::kNone));
  for (const auto& [peer, timer] : std::exchange(redials_, {})) {
    loop_.Cancel(timer);
  }
  handshakes_.clear();  // none of them is in an event: those that end or join are taken out first
  missing_.clear();
  loop_.Post([ready = std::exchange(ready_, nullptr), status]() mutable { ready(status); });
}

absl::Status Rendezvous::Missing() const {
  std::vector<std::string> names;
  for (const auto& [endpoint, peer] : missing_) {
    names.push_back(absl::StrFormat("%s (%s)", NameOf(endpoint), peer.address));
  }
  return DeadlineExceeded("%s has no tensor stream to %s", NameOf(options_.self),
                          absl::StrJoin(names, ", "));
}

}  // namespace ranklab::transport
