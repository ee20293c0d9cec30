#include "transport/local_wire.h"

#include <cstring>
#include <map>
#include <utility>

#include "core/check.h"
#include "core/status.h"

namespace ranklab::transport {
namespace {

// One wire, as the others see it.
struct End {
  Endpoint self;
  WireSink* sink = nullptr;
  absl::Status closed;                    // why, once aborted or disconnected
  std::map<Endpoint, absl::Status> lost;  // peers whose connection ended, and why
  std::map<Endpoint, WireCounters> counters;
};

void CountMessage(End& from, End& to, Bytes size) {
  WireCounters& out = from.counters[to.self];
  out.body_sent += size;
  out.wire_sent += size;
  ++out.messages_sent;
  WireCounters& in = to.counters[from.self];
  in.body_received += size;
  in.wire_received += size;
  ++in.messages_received;
}

// `end` no longer hears from `peer`. Its sink may do anything, so this comes last.
void Lose(End& end, Endpoint peer, const absl::Status& why) {
  if (end.closed.ok() && end.lost.emplace(peer, why).second && end.sink != nullptr) {
    end.sink->Lost(peer, why);
  }
}

}  // namespace

class LocalNetwork::Core {
 public:
  explicit Core(EventLoop& loop) : loop_(loop) {}

  std::shared_ptr<End> Add(Endpoint self) {
    auto end = std::make_shared<End>();
    end->self = self;
    ends_[self] = end;
    return end;
  }

  void Remove(const std::shared_ptr<End>& end) {
    const auto found = ends_.find(end->self);
    if (found != ends_.end() && found->second == end) {
      ends_.erase(found);
    }
  }

  std::shared_ptr<End> Find(Endpoint endpoint) const {
    const auto found = ends_.find(endpoint);
    return found == ends_.end() ? nullptr : found->second;
  }

  // Ends the wire: later and queued sends with `reason`, its peers' connections with `why`.
  void Close(End& closing, const absl::Status& reason, const absl::Status& why) {
    if (!closing.closed.ok()) {
      return;
    }
    closing.closed = reason;
    for (const auto& [endpoint, end] : ends_) {
      if (end.get() != &closing) {
        loop_.Post([end = end, gone = closing.self, why] { Lose(*end, gone, why); });
      }
    }
  }

  EventLoop& loop() { return loop_; }

 private:
  EventLoop& loop_;
  std::map<Endpoint, std::shared_ptr<End>> ends_;
};

namespace {

// Delivers in a later task, so that no call re-enters its caller, and in order, because tasks run
// in the order posted.
class LocalWire final : public Wire {
 public:
  LocalWire(std::shared_ptr<LocalNetwork::Core> core, Endpoint self)
      : core_(std::move(core)), end_(core_->Add(self)) {}

  ~LocalWire() override {
    Abort(Aborted("%s: the wire was closed", NameOf(end_->self)));
    core_->Remove(end_);
  }

  Endpoint self() const override { return end_->self; }

  void Deliver(WireSink& sink) override {
    RANKLAB_CHECK(end_->sink == nullptr, "%s has a sink already", NameOf(self()));
    end_->sink = &sink;
  }

  void Send(Endpoint to, const MessageHeader& header, Payload body, DoneFn sent) override {
    RANKLAB_CHECK(header.size == body.size, "header %d, body %d", header.size, body.size);
    core_->loop().Post(
        [core = core_, from = end_, to, header, body, sent = std::move(sent)]() mutable {
          Transmit(*core, *from, to, header, body, std::move(sent));
        });
  }

  void Abort(absl::Status reason) override {
    core_->Close(*end_, reason, Unavailable("%s closed the connection", NameOf(self())));
  }

  WireCounters counters(Endpoint peer) const override {
    const auto found = end_->counters.find(peer);
    return found == end_->counters.end() ? WireCounters{} : found->second;
  }

 private:
  static void Transmit(LocalNetwork::Core& core, End& from, Endpoint to,
                       const MessageHeader& header, Payload body, DoneFn sent) {
    const std::shared_ptr<End> receiver = core.Find(to);
    if (!from.closed.ok()) {
      sent(from.closed);
    } else if (const auto lost = from.lost.find(to); lost != from.lost.end()) {
      sent(Unavailable("%s", MessageOf(lost->second)));
    } else if (receiver == nullptr || !receiver->closed.ok()) {
      sent(Unavailable("%s is gone", NameOf(to)));
    } else {
      Hand(core, from, *receiver, header, body, std::move(sent));
    }
  }

  static void Hand(LocalNetwork::Core& core, End& from, End& to, const MessageHeader& header,
                   Payload body, DoneFn sent) {
    RANKLAB_CHECK(to.sink != nullptr, "%s has no sink", NameOf(to.self));
    CountMessage(from, to, header.size);
    if (to.lost.contains(from.self)) {
      sent(absl::OkStatus());  // into the void: the sender learns of the loss from a queued task
      return;
    }
    const absl::StatusOr<WireSink::Acceptance> accepted = to.sink->Accept(from.self, header);
    if (!accepted.ok()) {
      const Endpoint sender = from.self;
      core.loop().Post([end = core.Find(sender), peer = to.self] {
        if (end != nullptr) {
          Lose(*end, peer, Unavailable("%s closed the connection", NameOf(peer)));
        }
      });
      sent(absl::OkStatus());
      Lose(to, sender, accepted.status());
      return;
    }
    if (body.data != nullptr && accepted->landing.data != nullptr) {
      RANKLAB_CHECK(accepted->landing.size == header.size, "landing %d, message %d",
                    accepted->landing.size, header.size);
      std::memcpy(accepted->landing.data, body.data, static_cast<std::size_t>(body.size));
    }
    sent(absl::OkStatus());
    if (to.closed.ok() && !to.lost.contains(from.self)) {
      to.sink->Arrived(from.self, header, accepted->token);
    }
  }

  std::shared_ptr<LocalNetwork::Core> core_;
  std::shared_ptr<End> end_;  // outlives this in queued sends
};

}  // namespace

LocalNetwork::LocalNetwork(EventLoop& loop) : core_(std::make_shared<Core>(loop)) {}
LocalNetwork::~LocalNetwork() = default;

std::unique_ptr<Wire> LocalNetwork::Connect(Endpoint self) {
  return std::make_unique<LocalWire>(core_, self);
}

void LocalNetwork::Disconnect(Endpoint endpoint) {
  const std::shared_ptr<End> end = core_->Find(endpoint);
  RANKLAB_CHECK(end != nullptr, "%s is not connected", NameOf(endpoint));
  core_->Close(*end, Aborted("%s was disconnected", NameOf(endpoint)),
               Unavailable("%s was disconnected", NameOf(endpoint)));
}

}  // namespace ranklab::transport
