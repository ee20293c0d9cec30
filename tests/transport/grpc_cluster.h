// Endpoints over real gRPC on this machine, each with a loop, a port and a host of its own, as in
// separate processes; for tests.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>
#include <gtest/gtest.h>

#include "core/check.h"
#include "core/status.h"
#include "transport/grpc/grpc_port.h"
#include "transport/grpc/service_host.h"
#include "transport/tcp/live_loop.h"

namespace ranklab::transport {

// A bound for what must happen, generous for slow machines: no test takes it to pass.
inline constexpr absl::Duration kSoon = absl::Seconds(20);

// Written on loops, awaited by the test.
template <typename T>
class Awaited {
 public:
  template <typename Change>
  void Update(Change change) {
    absl::MutexLock lock(&mutex_);
    change(value_);
  }

  // The value once `ready(value)` holds; what it is after `kSoon` otherwise.
  template <typename Ready>
  T WaitFor(Ready ready) {
    absl::MutexLock lock(&mutex_);
    auto condition = [&] { return ready(value_); };
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&condition), kSoon)) << "not in time";
    return value_;
  }

 private:
  absl::Mutex mutex_;
  T value_ = {};
};

// How operations ended, in the order in which they did.
class Outcomes {
 public:
  DoneFn Done() {
    return [this](absl::Status status) {
      ended_.Update([&](std::vector<absl::Status>& all) { all.push_back(status); });
    };
  }
  std::vector<absl::Status> WaitFor(std::size_t count) {
    return ended_.WaitFor([&](const auto& all) { return all.size() >= count; });
  }

 private:
  Awaited<std::vector<absl::Status>> ended_;
};

struct ReceivedMessage {
  Endpoint from;
  MessageHeader header;
  std::vector<std::byte> body;
};

class RecordingSink final : public WireSink {
 public:
  absl::StatusOr<Acceptance> Accept(Endpoint from, const MessageHeader& header) override {
    if (header.request.method == kMethodToRefuse) {
      return InvalidArgument("method %d makes no sense here", header.request.method);
    }
    const std::uint64_t token = ++last_token_;
    ReceivedMessage& message = landing_[token];
    message = {.from = from, .header = header, .body = {}};
    message.body.resize(static_cast<std::size_t>(header.size));
    return Acceptance{.landing = {message.body.data(), header.size}, .token = token};
  }
  void Arrived(Endpoint /*from*/, const MessageHeader& /*header*/, std::uint64_t token) override {
    ReceivedMessage message = std::move(landing_.extract(token).mapped());
    messages.Update([&](auto& all) { all.push_back(std::move(message)); });
  }
  void Lost(Endpoint peer, absl::Status why) override {
    lost.Update([&](auto& all) { all.emplace_back(peer, why); });
  }

  static constexpr std::uint32_t kMethodToRefuse = 4711;

  Awaited<std::vector<ReceivedMessage>> messages;
  Awaited<std::vector<std::pair<Endpoint, absl::Status>>> lost;

 private:
  std::uint64_t last_token_ = 0;
  std::map<std::uint64_t, ReceivedMessage> landing_;
};

// One endpoint's process.
class GrpcNode {
 public:
  explicit GrpcNode(Endpoint self) : self_(self), port_(std::make_unique<GrpcPort>(loop_)) {
    absl::StatusOr<std::unique_ptr<ServiceHost>> host =
        ServiceHost::Start({.address = "127.0.0.1:0", .services = {&port_->service()}});
    RANKLAB_CHECK(host.ok(), "%s", MessageOf(host.status()));
    host_ = *std::move(host);
    port_->SetPort(host_->port());
  }
  ~GrpcNode() { Die(); }

  // Everything of it ends, as if the process had.
  void Die() {
    CloseWire();
    host_.reset();
    loop_.RunAndWait([&] { port_.reset(); });
  }

  Endpoint self() const { return self_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(host_->port()); }
  WirePeer AsPeer() const { return {.endpoint = self_, .address = address()}; }
  LiveLoop& loop() { return loop_; }
  GrpcPort& port() { return *port_; }
  Wire& wire() { return *wire_; }  // on the loop only
  RecordingSink& sink() { return *sink_; }

  // With kSoon as the deadline. Without a sink, nothing is read.
  void Open(std::uint32_t generation, std::vector<WirePeer> peers, DoneFn ready,
            bool with_sink = true) {
    Open({.self = self_,
          .generation = generation,
          .secret = kSecret,
          .peers = std::move(peers),
          .deadline = loop_.Now() + absl::ToChronoNanoseconds(kSoon)},
         std::move(ready), with_sink);
  }
  void Open(const WireOptions& options, DoneFn ready, bool with_sink = true) {
    sink_ = std::make_unique<RecordingSink>();
    loop_.RunAndWait([&] {
      wire_ = port_->Open(options, std::move(ready));
      if (with_sink) {
        wire_->Deliver(*sink_);
      }
    });
  }

  void Send(Endpoint to, MessageHeader header, Payload body, DoneFn sent) {
    header.size = body.size;
    loop_.RunAndWait([&] { wire_->Send(to, header, body, std::move(sent)); });
  }
  void Abort(const absl::Status& reason) {
    loop_.RunAndWait([&] { wire_->Abort(reason); });
  }
  void CloseWire() {
    loop_.RunAndWait([&] { wire_.reset(); });
  }
  WireCounters CountersOf(Endpoint peer) {
    WireCounters counters;
    loop_.RunAndWait([&] { counters = wire_->counters(peer); });
    return counters;
  }

  // Returns once nothing has gone out to `peer` for half a second: windows and sockets are full.
  void AwaitStandstill(Endpoint peer) {
    Bytes before = -1;
    for (Bytes now = 0; now != before; now = CountersOf(peer).body_sent) {
      before = now;
      Awaited<bool> later;
      loop_.RunAt(loop_.Now() + std::chrono::milliseconds(500),
                  [&] { later.Update([](bool& value) { value = true; }); });
      later.WaitFor([](bool value) { return value; });
    }
  }

  static constexpr std::uint64_t kSecret = 0x5ec4e7;

 private:
  const Endpoint self_;
  LiveLoop loop_;
  std::unique_ptr<GrpcPort> port_;
  std::unique_ptr<ServiceHost> host_;
  std::unique_ptr<RecordingSink> sink_;
  std::unique_ptr<Wire> wire_;
};

// Opens `nodes` to each other in one generation.
inline void Connect(std::vector<GrpcNode*> nodes, std::uint32_t generation = 1) {
  Outcomes ready;
  for (GrpcNode* node : nodes) {
    std::vector<WirePeer> peers;
    for (const GrpcNode* other : nodes) {
      if (other != node) {
        peers.push_back(other->AsPeer());
      }
    }
    node->Open(generation, peers, ready.Done());
  }
  for (const absl::Status& status : ready.WaitFor(nodes.size())) {
    ASSERT_TRUE(status.ok()) << status;
  }
}

}  // namespace ranklab::transport
