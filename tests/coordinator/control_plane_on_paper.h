// The coordinator without gRPC, on virtual time: streams that keep what was sent, and members and
// clients that say what a test wants.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/control_plane.h"
#include "core/status.h"
#include "sim/virtual_loop.h"

namespace ranklab::coordinator {

// Keeps what was sent; ends, as a real stream does, from the loop's queue after Close.
template <typename Interface, typename Message>
class StreamOnPaper : public Interface {
 public:
  StreamOnPaper(EventLoop& loop, ControlPlane& plane) : loop_(loop), plane_(plane) {}

  void Send(Message message) override {
    EXPECT_FALSE(closed.has_value());
    sent.push_back(std::move(message));
  }
  void Close(absl::Status status) override {
    if (closed) {
      return;
    }
    closed = std::move(status);
    loop_.Post([this] { GoAway(); });
  }
  void GoAway() {
    if (!std::exchange(gone_, true)) {
      plane_.Ended(static_cast<Interface&>(*this));
    }
  }

  std::vector<Message> sent;
  std::optional<absl::Status> closed;

 private:
  EventLoop& loop_;
  ControlPlane& plane_;
  bool gone_ = false;
};
using Session = StreamOnPaper<MemberStream, v1::CoordinatorMessage>;

class Client final : public StreamOnPaper<ClientStream, v1::RunEvent> {
 public:
  using StreamOnPaper::StreamOnPaper;

  // One that is held up reads on later: the stream ends with its GoAway.
  void Close(absl::Status status) override {
    if (held_up) {
      closed = std::move(status);
    } else {
      StreamOnPaper::Close(std::move(status));
    }
  }
  void Drop(absl::Status status) override { Close(std::move(status)); }
  Bytes waiting() const override { return unread; }
  std::string peer() const override { return "ipv4:10.0.0.3:41234"; }

  Bytes unread = 0;
  bool held_up = false;
};

inline constexpr const char* kLab = R"(
name: small
model: {kind: mlp, layers: [64, 16, 10]}
data: {kind: digits}
train: {steps: 3, global_batch: 32, optimizer: sgd, learning_rate: 0.1}
cluster: {workers: 2}
exchange: {kind: collective, algorithm: ring}
)";

class ControlPlaneTest : public testing::Test {
 protected:
  explicit ControlPlaneTest(bool once = false) : plane(loop, Options(once)) {}
  ~ControlPlaneTest() override { plane.Shutdown(0, "the test is over"); }

  CoordinatorOptions Options(bool once) {
    return {.build = "b",
            .forecast = [](const experiment::Cell&) -> absl::StatusOr<CellForecast> {
              return CellForecast{};
            },
            .finished = [this](int exit_code) { finished.push_back(exit_code); },
            .once = once};
  }

  static v1::MemberMessage JoinMessage(const std::string& build = "b") {
    v1::MemberMessage message;
    message.mutable_join()->set_host("h");
    message.mutable_join()->set_build(build);
    return message;
  }

  Session& Open() {
    Session& session = *sessions.emplace_back(std::make_unique<Session>(loop, plane));
    plane.Opened(session);
    return session;
  }
  Session& Join(bool once = false) {
    Session& session = Open();
    v1::MemberMessage join = JoinMessage();
    join.mutable_join()->set_once(once);
    plane.Received(session, join);
    EXPECT_THAT(session.sent, testing::SizeIs(1));
    EXPECT_TRUE(session.sent.back().has_joined());
    return session;
  }
  Client& NewClient() { return *clients.emplace_back(std::make_unique<Client>(loop, plane)); }
  v1::RunLabRequest LabRequest(bool dismiss_pool = false) {
    v1::RunLabRequest request;
    request.set_lab_name("labs/small.yaml");
    request.set_lab_text(kLab);
    request.set_build("b");
    request.set_join_timeout_ns(Nanos(std::chrono::seconds(2)).count());
    request.set_dismiss_pool(dismiss_pool);
    return request;
  }
  // Every member does at once what it is told to, until nobody is told anything more.
  void Work() {
    bool anything = true;
    while (std::exchange(anything, false)) {
      for (const auto& session : sessions) {
        std::size_t& read = read_[session.get()];
        while (read < session->sent.size()) {
          anything = true;
          Answer(*session, session->sent[read++]);
        }
      }
    }
  }
  void Answer(Session& session, const v1::CoordinatorMessage& told) {
    v1::MemberMessage message;
    if (told.has_assignment()) {
      message.mutable_ready()->set_generation(told.assignment().generation());
      message.mutable_ready()->set_lab_hash(told.assignment().lab_hash());
    } else if (told.has_go()) {
      message.mutable_result()->set_generation(told.go().generation());
    } else {
      return;
    }
    plane.Received(session, message);
  }
  static v1::ConcludeRequest Conclusion(int exit_code) {
    v1::ConcludeRequest request;
    request.set_exit_code(exit_code);
    request.set_text("what the client says");
    return request;
  }

  void Pass(Nanos duration) { loop.RunUntil(loop.Now() + duration); }

  sim::VirtualLoop loop;
  std::vector<int> finished;
  std::vector<std::unique_ptr<Session>> sessions;  // open until the plane is shut down
  std::vector<std::unique_ptr<Client>> clients;
  ControlPlane plane;

 private:
  std::map<const Session*, std::size_t> read_;
};

}  // namespace ranklab::coordinator
