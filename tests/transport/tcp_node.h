// A process's share of a TCP cluster, for tests: its own loop, port, wire and messenger.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <absl/status/status.h>
#include <absl/synchronization/notification.h>
#include <absl/time/time.h>
#include <gtest/gtest.h>

#include "core/endpoint.h"
#include "core/status.h"
#include "tests/transport/bytes.h"
#include "transport/messenger.h"
#include "transport/tcp/live_loop.h"
#include "transport/tcp/tcp_port.h"

namespace ranklab::transport {

// How an operation on another thread's loop ended. Wait gives up after a time that only a hang
// takes.
class Ending {
 public:
  DoneFn Done() {
    return [this](absl::Status status) {
      status_ = std::move(status);
      ended_.Notify();  // which fails the program if it is the second time
    };
  }
  absl::Status Wait() {
    if (!ended_.WaitForNotificationWithTimeout(absl::Seconds(30))) {
      return MakeError(absl::StatusCode::kUnknown, "the operation did not end");
    }
    return status_;
  }
  bool HasEnded() const { return ended_.HasBeenNotified(); }

 private:
  absl::Status status_;
  absl::Notification ended_;
};

class TcpNode {
 public:
  explicit TcpNode(Endpoint self, const TcpOptions& options = {}) : self_(self) {
    auto port = TcpPort::Listen(loop_, "127.0.0.1:0", options);
    EXPECT_TRUE(port.ok()) << port.status();
    port_ = *std::move(port);
  }
  ~TcpNode() { Close(); }

  Endpoint self() const { return self_; }
  LiveLoop& loop() { return loop_; }
  TcpPort& port() { return *port_; }
  Messenger& messenger() { return *messenger_; }
  Wire& wire() { return *wire_; }
  WirePeer AsPeer() const { return {self_, "127.0.0.1:" + std::to_string(port_->port())}; }

  // A wire to `peers` and a messenger on it; `ready` ends when they are connected.
  void Open(std::vector<WirePeer> peers, Ending& ready, Nanos patience = std::chrono::seconds(20),
            const MessengerOptions& options = {.generation = 1}, std::uint64_t secret = 42) {
    loop_.RunAndWait([&] {
      wire_ = port_->Open({.self = self_,
                           .generation = options.generation,
                           .secret = secret,
                           .peers = std::move(peers),
                           .deadline = loop_.Now() + patience},
                          ready.Done());
      messenger_ = std::make_unique<Messenger>(loop_, *wire_, options);
    });
  }

  void Send(Endpoint to, const Envelope& envelope, Payload payload, Ending& ending) {
    loop_.RunAndWait([&] { messenger_->Send(to, envelope, payload, ending.Done()); });
  }
  void Recv(Endpoint from, const Envelope& envelope, Landing into, Ending& ending) {
    loop_.RunAndWait([&] { messenger_->Recv(from, envelope, into, ending.Done()); });
  }

  // As when the process ends.
  void Close() {
    if (messenger_ != nullptr) {
      loop_.RunAndWait([this] {
        messenger_.reset();
        wire_.reset();
      });
    }
  }

 private:
  Endpoint self_;
  LiveLoop loop_;
  std::unique_ptr<TcpPort> port_;
  std::unique_ptr<Wire> wire_;
  std::unique_ptr<Messenger> messenger_;
};

}  // namespace ranklab::transport
