// The gRPC wire over real connections of this machine.
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/log.h"
#include "tests/transport/grpc_cluster.h"

namespace ranklab::transport {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr Endpoint kWorker0{Role::kWorker, 0};
constexpr Endpoint kWorker1{Role::kWorker, 1};
constexpr Endpoint kServer0{Role::kServer, 0};

// Differs from its neighbours at every offset, and from that of another seed.
std::vector<std::byte> BytesOf(std::size_t size, std::uint64_t seed) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::byte>(i * 131 + (i >> 8) + seed * 17 + 1);
  }
  return bytes;
}

Payload PayloadOf(const std::vector<std::byte>& bytes) {
  return {bytes.data(), static_cast<Bytes>(bytes.size())};
}

class GrpcWireTest : public testing::Test {
 protected:
  GrpcWireTest() { SetLogLevel(LogLevel::kError); }  // losses are what these tests are about
};

TEST_F(GrpcWireTest, CarriesMessagesOfEverySizeInOrderBothWays) {
  // A body is scribbled over as soon as `sent` has run: had gRPC still needed it, it would differ
  // at the receiver.
  GrpcNode worker(kWorker0);
  GrpcNode server(kServer0);
  Connect({&worker, &server});
  const std::vector<std::size_t> sizes = {0,         1, 100, (1 << 20) - 1, 1 << 20, (1 << 20) + 1,
                                          5'000'003, 0, 7};
  for (GrpcNode* from : {&worker, &server}) {
    GrpcNode* to = from == &worker ? &server : &worker;
    Outcomes sent;
    std::vector<std::vector<std::byte>> bodies;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      bodies.push_back(BytesOf(sizes[i], i));
    }
    Bytes total = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      total += static_cast<Bytes>(sizes[i]);
      MessageHeader header;
      header.envelope.sequence = i;
      header.error = "as it was";
      from->Send(to->self(), header, PayloadOf(bodies[i]),
                 [&, i, done = sent.Done()](absl::Status status) mutable {
                   std::fill(bodies[i].begin(), bodies[i].end(), std::byte{0});
                   done(status);
                 });
    }
    const auto received =
        to->sink().messages.WaitFor([&](const auto& all) { return all.size() >= sizes.size(); });
    ASSERT_EQ(received.size(), sizes.size());
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      EXPECT_EQ(received[i].header.envelope.sequence, i);
      EXPECT_EQ(received[i].header.error, "as it was");
      EXPECT_EQ(received[i].from, from->self());
      EXPECT_TRUE(received[i].body == BytesOf(sizes[i], i)) << sizes[i] << " bytes";
    }
    for (const absl::Status& status : sent.WaitFor(sizes.size())) {
      EXPECT_TRUE(status.ok()) << status;
    }
    const WireCounters out = from->CountersOf(to->self());
    const WireCounters in = to->CountersOf(from->self());
    EXPECT_EQ(out.body_sent, total);
    EXPECT_EQ(in.body_received, total);
    EXPECT_EQ(out.messages_sent, static_cast<std::int64_t>(sizes.size()));
    EXPECT_EQ(in.messages_received, static_cast<std::int64_t>(sizes.size()));
    EXPECT_EQ(out.wire_sent, in.wire_received);
    EXPECT_GT(out.wire_sent, total);
  }
}

TEST_F(GrpcWireTest, ConnectsEveryPair) {
  GrpcNode worker0(kWorker0);
  GrpcNode worker1(kWorker1);
  GrpcNode server0(kServer0);
  const std::vector<GrpcNode*> nodes = {&worker0, &worker1, &server0};
  Connect(nodes);
  const std::vector<std::byte> body = BytesOf(10, 1);
  Outcomes sent;
  for (GrpcNode* from : nodes) {
    for (GrpcNode* to : nodes) {
      if (from != to) {
        from->Send(to->self(), {}, PayloadOf(body), sent.Done());
      }
    }
  }
  for (GrpcNode* node : nodes) {
    const auto received =
        node->sink().messages.WaitFor([](const auto& all) { return all.size() >= 2; });
    EXPECT_NE(received[0].from, received[1].from);
  }
  sent.WaitFor(6);
}

TEST_F(GrpcWireTest, APeerThatDialsBeforeOpenIsKeptWaiting) {
  GrpcNode worker(kWorker0);
  GrpcNode server(kServer0);
  Connect({&worker, &server}, 1);
  // The worker goes on to generation 2 while the server is still in generation 1.
  Outcomes ready;
  worker.Open(2, {server.AsPeer()}, ready.Done());
  server.sink().lost.WaitFor([](const auto& all) { return !all.empty(); });
  server.Open(2, {worker.AsPeer()}, ready.Done());
  for (const absl::Status& status : ready.WaitFor(2)) {
    EXPECT_TRUE(status.ok()) << status;
  }
  EXPECT_EQ(server.port().refused_connections(), 0);
}

TEST_F(GrpcWireTest, WithoutPeersItIsReadyAtOnce) {
  GrpcNode worker(kWorker0);
  Outcomes ready;
  worker.Open(1, {}, ready.Done());
  EXPECT_THAT(ready.WaitFor(1), ElementsAre(absl::OkStatus()));
}

TEST_F(GrpcWireTest, TheDeadlineNamesWhoIsMissingAndWhere) {
  GrpcNode worker1(kWorker1);
  Outcomes ready;
  worker1.Open({.self = kWorker1,
                .generation = 3,
                .secret = 1,
                .peers = {{kWorker0, "127.0.0.1:7070"}, {kServer0, "127.0.0.1:1"}},
                .deadline = worker1.loop().Now() + std::chrono::milliseconds(200)},
               ready.Done());
  const absl::Status status = ready.WaitFor(1).front();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(MessageOf(status), HasSubstr("worker 1 has no tensor stream to worker 0 "
                                           "(127.0.0.1:7070), server 0 (127.0.0.1:1)"));
}

TEST_F(GrpcWireTest, ADeadPeerIsLostAndItsSendsEnd) {
  for (const bool dialer_dies : {true, false}) {
    SCOPED_TRACE(dialer_dies ? "the dialer dies" : "the dialed one dies");
    GrpcNode worker(kWorker0);
    GrpcNode server(kServer0);
    Connect({&worker, &server});
    GrpcNode& dying = dialer_dies ? worker : server;
    GrpcNode& living = dialer_dies ? server : worker;
    const Endpoint dead = dying.self();
    const std::string address = dying.address();
    dying.Die();
    const auto lost = living.sink().lost.WaitFor([](const auto& all) { return !all.empty(); });
    ASSERT_EQ(lost.size(), 1u);
    EXPECT_EQ(lost[0].first, dead);
    EXPECT_EQ(lost[0].second.code(), absl::StatusCode::kUnavailable) << lost[0].second;
    EXPECT_THAT(MessageOf(lost[0].second), HasSubstr(NameOf(dead) + " at " + address));
    Outcomes sent;
    living.Send(dead, {}, {}, sent.Done());
    EXPECT_EQ(sent.WaitFor(1).front().code(), absl::StatusCode::kUnavailable);
  }
}

TEST_F(GrpcWireTest, AbortEndsSendsThatTheReceiverDoesNotRead) {
  // 64 MiB do not fit into windows and sockets; nobody reads, so they are still gRPC's when Abort
  // comes. `sent` must run all the same, once, and only when gRPC has let go: the sanitizers see
  // to it that the bodies, freed right after, are not touched.
  GrpcNode worker(kWorker0);
  GrpcNode server(kServer0);
  Outcomes ready;
  server.Open(1, {worker.AsPeer()}, ready.Done(), /*with_sink=*/false);
  worker.Open(1, {server.AsPeer()}, ready.Done());
  ready.WaitFor(2);
  auto body = std::make_unique<std::vector<std::byte>>(64 << 20);
  Outcomes sent;
  worker.Send(kServer0, {}, PayloadOf(*body), sent.Done());
  worker.Send(kServer0, {}, PayloadOf(*body), sent.Done());
  worker.AwaitStandstill(kServer0);
  worker.Abort(Aborted("generation 1 has ended"));
  const std::vector<absl::Status> ended = sent.WaitFor(2);
  body.reset();
  worker.Send(kServer0, {}, {}, sent.Done());
  EXPECT_THAT(sent.WaitFor(3), testing::Each(Aborted("generation 1 has ended")));
  server.CloseWire();
}

TEST_F(GrpcWireTest, AbortBeforeReadyEndsTheOpening) {
  GrpcNode worker(kWorker0);
  Outcomes ready;
  worker.Open(1, {{kServer0, "127.0.0.1:1"}}, ready.Done());
  Outcomes sent;
  worker.Send(kServer0, {}, {}, sent.Done());  // waits for the connection
  worker.Abort(Aborted("stopped"));
  EXPECT_THAT(ready.WaitFor(1), ElementsAre(Aborted("stopped")));
  EXPECT_THAT(sent.WaitFor(1), ElementsAre(Aborted("stopped")));
}

TEST_F(GrpcWireTest, TheNextGenerationUsesTheSamePorts) {
  GrpcNode worker(kWorker0);
  GrpcNode server(kServer0);
  for (const std::uint32_t generation : {1, 2, 3}) {
    Connect({&worker, &server}, generation);
    Outcomes sent;
    server.Send(kWorker0, {}, {}, sent.Done());
    worker.sink().messages.WaitFor([](const auto& all) { return all.size() == 1; });
    EXPECT_TRUE(sent.WaitFor(1).front().ok());
    worker.CloseWire();
    server.CloseWire();
  }
}

}  // namespace
}  // namespace ranklab::transport
