// Shaped wires on one virtual loop, and what each endpoint heard, for tests.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include <absl/status/status.h>

#include "core/endpoint.h"
#include "core/event_loop.h"
#include "sim/virtual_loop.h"
#include "transport/local_wire.h"
#include "transport/shaped_wire.h"

namespace ranklab::transport {

// One endpoint with its wire; lands nothing, remembers everything.
class Listener final : public WireSink {
 public:
  struct Heard {
    Endpoint from;
    MessageHeader header;
    Nanos when{};
  };

  Listener(EventLoop& loop, std::unique_ptr<Wire> wire) : loop_(loop), wire_(std::move(wire)) {
    wire_->Deliver(*this);
  }

  absl::StatusOr<Acceptance> Accept(Endpoint, const MessageHeader& header) override {
    if (!refuses.ok()) {
      return refuses;
    }
    accepted.push_back(header);
    return Acceptance{.landing = {}, .token = accepted.size()};
  }
  void Arrived(Endpoint from, const MessageHeader& header, std::uint64_t) override {
    heard.push_back({.from = from, .header = header, .when = loop_.Now()});
    if (on_arrival) {
      on_arrival(from, header);
    }
  }
  void Lost(Endpoint peer, absl::Status why) override {
    lost.emplace_back(peer, std::move(why));
    lost_at = loop_.Now();
  }

  // A message of `size` bytes that are not there: only the size travels. `part` tells it apart.
  void Send(Endpoint to, Bytes size, std::uint32_t part = 0,
            MessageKind kind = MessageKind::kPosted) {
    MessageHeader header;
    header.kind = kind;
    header.size = size;
    header.envelope.part = part;
    wire_->Send(to, header, {.data = nullptr, .size = size},
                [this](absl::Status status) { sent.emplace_back(loop_.Now(), std::move(status)); });
  }

  Wire& wire() { return *wire_; }
  ShapedWire& shaped() { return dynamic_cast<ShapedWire&>(*wire_); }
  void DestroyWire() { wire_.reset(); }

  std::vector<Nanos> ArrivalTimes() const {
    std::vector<Nanos> times;
    for (const Heard& one : heard) {
      times.push_back(one.when);
    }
    return times;
  }

  absl::Status refuses;  // what Accept answers, unless ok
  std::function<void(Endpoint, const MessageHeader&)> on_arrival;
  std::vector<MessageHeader> accepted;
  std::vector<Heard> heard;
  std::vector<std::pair<Nanos, absl::Status>> sent;
  std::vector<std::pair<Endpoint, absl::Status>> lost;
  Nanos lost_at{};

 private:
  EventLoop& loop_;
  std::unique_ptr<Wire> wire_;
};

// A loop whose timers fire late, as they do on a real machine.
class LateLoop final : public EventLoop {
 public:
  LateLoop(EventLoop& loop, Nanos late) : loop_(loop), late_(late) {}

  Nanos Now() const override { return loop_.Now(); }
  void Post(Task task) override { loop_.Post(std::move(task)); }
  TimerId RunAt(Nanos when, Task task) override {
    return loop_.RunAt(when > loop_.Now() ? when + late_ : when, std::move(task));
  }
  void Cancel(TimerId timer) override { loop_.Cancel(timer); }

 private:
  EventLoop& loop_;
  Nanos late_;
};

class ShapedCluster {
 public:
  explicit ShapedCluster(const ShapeOptions& options, Nanos timers_late = {})
      : options_(options), late_loop_(loop_, timers_late) {}

  Listener& At(Endpoint endpoint) { return At(endpoint, options_); }
  Listener& At(Endpoint endpoint, const ShapeOptions& options) {
    std::unique_ptr<Listener>& listener = listeners_[endpoint];
    if (listener == nullptr) {
      listener = std::make_unique<Listener>(
          late_loop_,
          std::make_unique<ShapedWire>(late_loop_, network_.Connect(endpoint), options));
    }
    return *listener;
  }
  // An endpoint whose wire is not shaped.
  Listener& Plain(Endpoint endpoint) {
    std::unique_ptr<Listener>& listener = listeners_[endpoint];
    if (listener == nullptr) {
      listener = std::make_unique<Listener>(late_loop_, network_.Connect(endpoint));
    }
    return *listener;
  }

  void Kill(Endpoint endpoint) { network_.Disconnect(endpoint); }
  void Run() { loop_.Run(); }
  sim::VirtualLoop& loop() { return loop_; }

 private:
  ShapeOptions options_;
  sim::VirtualLoop loop_;
  LateLoop late_loop_;
  LocalNetwork network_{late_loop_};
  std::map<Endpoint, std::unique_ptr<Listener>> listeners_;
};

}  // namespace ranklab::transport
