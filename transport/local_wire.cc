#include "transport/local_wire.h"

#include <cstring>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/status.h"

namespace ranklab::transport {

class LocalNetwork::Core : public std::enable_shared_from_this<LocalNetwork::Core> {
 public:
  explicit Core(EventLoop& loop) : loop_(loop) {}

  EventLoop& loop() { return loop_; }

  struct End {
    WireSink* sink = nullptr;
    bool gone = false;
    std::map<Endpoint, WireCounters> counters;
  };
  std::map<Endpoint, End> ends;

 private:
  EventLoop& loop_;
};

// Delivers in a later task, so that no call re-enters its caller, and in order, because tasks run in
// the order posted.
class LocalWire final : public Wire {
 public:
  LocalWire(std::shared_ptr<LocalNetwork::Core> core, Endpoint self)
      : core_(std::move(core)), self_(self) {}

  ~LocalWire() override { core_->ends.erase(self_); }

  Endpoint self() const override { return self_; }

  void Deliver(WireSink& sink) override { core_->ends[self_].sink = &sink; }

  void Send(Endpoint to, const MessageHeader& header, Payload body, DoneFn sent) override {
    RANKLAB_CHECK(header.size == body.size);
    std::vector<std::byte> bytes;
    if (body.data != nullptr) {
      bytes.assign(body.data, body.data + body.size);
    }
    core_->loop().Post([core = core_, from = self_, to, header, bytes = std::move(bytes),
                        sent = std::move(sent)]() mutable {
      const auto sender = core->ends.find(from);
      const auto receiver = core->ends.find(to);
      if (sender == core->ends.end() || sender->second.gone) {
        sent(Aborted("%s: the wire was closed", NameOf(from)));
        return;
      }
      if (receiver == core->ends.end() || receiver->second.gone) {
        sent(Unavailable("%s is gone", NameOf(to)));
        return;
      }
      WireCounters& out = sender->second.counters[to];
      out.body_sent += header.size;
      out.wire_sent += header.size;
      ++out.messages_sent;
      WireCounters& in = receiver->second.counters[from];
      in.body_received += header.size;
      in.wire_received += header.size;
      ++in.messages_received;
      sent(absl::OkStatus());
      Hand(*core, from, to, header, bytes);
    });
  }

  void Abort(absl::Status) override {
    End().gone = true;
    for (auto& [endpoint, end] : core_->ends) {
      if (endpoint != self_ && !end.gone && end.sink != nullptr) {
        core_->loop().Post([core = core_, peer = endpoint, self = self_] {
          const auto found = core->ends.find(peer);
          if (found != core->ends.end() && !found->second.gone && found->second.sink != nullptr) {
            found->second.sink->Lost(self, Unavailable("%s closed the connection", NameOf(self)));
          }
        });
      }
    }
  }

  WireCounters counters(Endpoint peer) const override {
    const auto& counters = core_->ends.at(self_).counters;
    const auto found = counters.find(peer);
    return found == counters.end() ? WireCounters{} : found->second;
  }

 private:
  LocalNetwork::Core::End& End() { return core_->ends[self_]; }

  static void Hand(LocalNetwork::Core& core, Endpoint from, Endpoint to,
                   const MessageHeader& header, const std::vector<std::byte>& bytes) {
    WireSink* sink = core.ends[to].sink;
    RANKLAB_CHECK(sink != nullptr, "%s has no sink", NameOf(to));
    absl::StatusOr<WireSink::Acceptance> accepted = sink->Accept(from, header);
    if (!accepted.ok()) {
      sink->Lost(from, accepted.status());
      return;
    }
    if (!bytes.empty() && accepted->landing.data != nullptr) {
      RANKLAB_CHECK(accepted->landing.size == header.size);
      std::memcpy(accepted->landing.data, bytes.data(), bytes.size());
    }
    sink->Arrived(from, header, accepted->token);
  }

  std::shared_ptr<LocalNetwork::Core> core_;
  Endpoint self_;
};

LocalNetwork::LocalNetwork(EventLoop& loop) : core_(std::make_shared<Core>(loop)) {}
LocalNetwork::~LocalNetwork() = default;

std::unique_ptr<Wire> LocalNetwork::Connect(Endpoint self) {
  core_->ends[self];
  return std::make_unique<LocalWire>(core_, self);
}

void LocalNetwork::Disconnect(Endpoint endpoint) {
  core_->ends[endpoint].gone = true;
  for (auto& [peer, end] : core_->ends) {
    if (peer != endpoint && !end.gone && end.sink != nullptr) {
      end.sink->Lost(endpoint, Unavailable("%s was disconnected", NameOf(endpoint)));
    }
  }
}

}  // namespace ranklab::transport
