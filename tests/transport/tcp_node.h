// A process's share of a TCP cluster, for tests: its own loop, port, wire and messenger.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <absl/status/status.h>
#include <gtest/gtest.h>

#include "core/endpoint.h"
#include "core/status.h"
#include "tests/transport/bytes.h"
#include "transport/messenger.h"
#include "transport/tcp/live_loop.h"
#include "transport/tcp/tcp_port.h"

namespace ranklab::transport {

// How an operation on another thread's loop ended. Wait gives up after a time that only a hang
// takes. Standard locks and a status of its own, because the thread sanitizer does not see what
// Abseil's library does inside.
class Ending {
 public:
  DoneFn Done() {
    return [this](const absl::Status& status) {
      const std::lock_guard lock(mutex_);
      EXPECT_FALSE(status_.has_value()) << "the operation ended twice";
      status_ = absl::Status(status.code(), MessageOf(status));
      ended_.notify_all();  // under the lock: afterwards this may be gone
    };
  }
  absl::Status Wait() {
    std::unique_lock lock(mutex_);
    ended_.wait_for(lock, std::chrono::seconds(60), [this] { return status_.has_value(); });
    return status_.value_or(MakeError(absl::StatusCode::kUnknown, "the operation did not end"));
  }
  bool HasEnded() const {
    const std::lock_guard lock(mutex_);
    return status_.has_value();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::optional<absl::Status> status_;
};

enum class SharedMemory { kNo, kYes };

class TcpNode {
 public:
  // Bodies are hashed although no other host is there: it is tested here.
  explicit TcpNode(Endpoint self, const TcpOptions& options = {BodyChecksums::kAlways},
                   SharedMemory shared_memory = SharedMemory::kNo)
      : self_(self), shared_memory_(shared_memory) {
    auto port = TcpPort::Listen(loop_, "127.0.0.1:0", options);
    EXPECT_TRUE(port.ok()) << port.status();
    port_ = *std::move(port);
  }
  ~TcpNode() { Close(); }

  Endpoint self() const { return self_; }
  bool shares_memory() const { return shared_memory_ == SharedMemory::kYes; }
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
                           .deadline = loop_.Now() + patience,
                           .shared_memory = shares_memory()},
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
  SharedMemory shared_memory_;
  LiveLoop loop_;
  std::unique_ptr<TcpPort> port_;
  std::unique_ptr<Wire> wire_;
  std::unique_ptr<Messenger> messenger_;
};

}  // namespace ranklab::transport
