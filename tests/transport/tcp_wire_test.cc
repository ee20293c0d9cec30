// Messages over real sockets of this machine, each endpoint with a loop and thread of its own.
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/random.h"
#include "core/status.h"
#include "tests/transport/tcp_node.h"
#include "transport/tcp/frame.h"

namespace ranklab::transport {
namespace {

using ::testing::HasSubstr;

// Bodies are hashed although no other host is there: it is tested here.
constexpr TcpOptions kHashed{BodyChecksums::kAlways};

// Through sockets, and through memory.
class TcpWire : public ::testing::TestWithParam<SharedMemory> {};
INSTANTIATE_TEST_SUITE_P(Ways, TcpWire, ::testing::Values(SharedMemory::kNo, SharedMemory::kYes),
                         [](const auto& info) {
                           return info.param == SharedMemory::kYes ? "Memory" : "Sockets";
                         });

// Opens wires among all nodes.
void Connect(std::deque<TcpNode>& nodes, const MessengerOptions& options = {.generation = 1}) {
  std::deque<Ending> ready(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    std::vector<WirePeer> peers;
    for (const TcpNode& other : nodes) {
      if (other.self() != nodes[i].self()) {
        peers.push_back(other.AsPeer());
      }
    }
    nodes[i].Open(std::move(peers), ready[i], std::chrono::seconds(20), options);
  }
  for (Ending& ending : ready) {
    const absl::Status status = ending.Wait();
    ASSERT_TRUE(status.ok()) << status;
  }
  for (TcpNode& node : nodes) {
    node.loop().RunAndWait([&] {
      for (const TcpNode& other : nodes) {
        if (other.self() != node.self()) {
          EXPECT_EQ(node.wire().counters(other.self()).shared_memory, node.shares_memory());
        }
      }
    });
  }
}

TEST_P(TcpWire, MovesMessagesOfEverySizeBothWays) {
  for (const BodyChecksums checksums :
       {BodyChecksums::kNever, BodyChecksums::kBetweenHosts, BodyChecksums::kAlways}) {
    std::deque<TcpNode> nodes;
    nodes.emplace_back(Worker(0), TcpOptions{checksums}, GetParam());
    nodes.emplace_back(Worker(1), TcpOptions{checksums}, GetParam());
    Connect(nodes);
    Random random(1);
    std::uint32_t part = 0;
    // Around the sizes that are read ahead, written in pieces, sent eagerly.
    for (const std::size_t size :
         {0, 1, 143, 144, 145, 4096, 32768, 65536, 65537, 262144, 262145, 1000003, 5000000}) {
      const Storage there = RandomBytes(size, random), back = RandomBytes(size, random);
      Storage got_there(size), got_back(size);
      Ending ends[4];
      const Envelope envelope{.generation = 1, .part = ++part};
      nodes[1].Recv(Worker(0), envelope, LandingOf(got_there), ends[0]);
      nodes[0].Send(Worker(1), envelope, PayloadOf(there), ends[1]);
      nodes[1].Send(Worker(0), envelope, PayloadOf(back), ends[2]);
      nodes[0].Recv(Worker(1), envelope, LandingOf(got_back), ends[3]);
      for (Ending& ending : ends) {
        ASSERT_EQ(ending.Wait(), absl::OkStatus()) << size;
      }
      ASSERT_EQ(got_there, there);
      ASSERT_EQ(got_back, back);
    }
  }
}

// Of a body; headers always have theirs.
TEST_P(TcpWire, ChecksumsAreLeftOutWithinAHostUnlessTheyAreAskedFor) {
  for (const BodyChecksums checksums :
       {BodyChecksums::kNever, BodyChecksums::kBetweenHosts, BodyChecksums::kAlways}) {
    std::deque<TcpNode> nodes;
    nodes.emplace_back(Worker(0), TcpOptions{checksums}, GetParam());
    nodes.emplace_back(Worker(1), TcpOptions{checksums}, GetParam());
    Connect(nodes);
    const Storage body(100);
    Storage received(body.size());
    Ending send, recv;
    nodes[1].Recv(Worker(0), {.generation = 1}, LandingOf(received), recv);
    nodes[0].Send(Worker(1), {.generation = 1}, PayloadOf(body), send);
    ASSERT_EQ(recv.Wait(), absl::OkStatus());
    ASSERT_EQ(send.Wait(), absl::OkStatus());
    const Bytes trailer = checksums == BodyChecksums::kAlways ? Bytes{kTrailerBytes} : 0;
    nodes[1].loop().RunAndWait([&] {
      EXPECT_EQ(nodes[1].wire().counters(Worker(0)).wire_received,
                static_cast<Bytes>(kHeaderBytes + body.size()) + trailer);
    });
  }
}

TEST_P(TcpWire, CountsBodiesAndAllBytes) {
  std::deque<TcpNode> nodes;
  nodes.emplace_back(Worker(0), kHashed, GetParam());
  nodes.emplace_back(Worker(1), kHashed, GetParam());
  Connect(nodes);
  const Storage body(300'000);
  Storage received(body.size());
  Ending send, recv;
  nodes[1].Recv(Worker(0), {.generation = 1}, LandingOf(received), recv);
  nodes[0].Send(Worker(1), {.generation = 1}, PayloadOf(body), send);
  ASSERT_TRUE(recv.Wait().ok());
  ASSERT_TRUE(send.Wait().ok());
  WireCounters sent, got;
  nodes[0].loop().RunAndWait([&] { sent = nodes[0].wire().counters(Worker(1)); });
  nodes[1].loop().RunAndWait([&] { got = nodes[1].wire().counters(Worker(0)); });
  EXPECT_EQ(sent.body_sent, 300'000);
  EXPECT_EQ(sent.messages_sent, 1);
  EXPECT_EQ(sent.messages_received, 1);  // the credit
  EXPECT_EQ(got.body_received, sent.body_sent);
  EXPECT_EQ(got.wire_received, sent.wire_sent);
  EXPECT_GT(sent.wire_sent, sent.body_sent);
  EXPECT_LT(sent.wire_sent, sent.body_sent + 300);
}

TEST_P(TcpWire, CarriesRequestsAmongPostedMessages) {
  std::deque<TcpNode> nodes;
  nodes.emplace_back(Worker(0), kHashed, GetParam());
  nodes.emplace_back(Server(0), kHashed, GetParam());
  Connect(nodes);
  Random random(2);
  const Storage parameters = RandomBytes(200'000, random), gradient = RandomBytes(100'000, random);
  nodes[1].loop().RunAndWait([&] {
    nodes[1].messenger().Serve(
        [&](Endpoint, const RequestHeader& header, Payload body, AnswerFn answer) {
          EXPECT_EQ(Storage(body.data, body.data + body.size), gradient);
          if (header.id == 2) {
            answer(FailedPrecondition("no such range"), {}, [](const absl::Status&) {});
          } else {
            answer(ReplyHeader{.version = 7}, PayloadOf(parameters), [](const absl::Status&) {});
          }
        });
  });
  Storage pulled(parameters.size()), posted(gradient.size());
  Ending calls[2], send, recv;
  nodes[0].loop().RunAndWait([&] {
    Messenger& worker = nodes[0].messenger();
    worker.Call(Server(0), {.id = 1}, PayloadOf(gradient), LandingOf(pulled),
                [done = calls[0].Done()](absl::StatusOr<ReplyHeader> answer) mutable {
                  EXPECT_TRUE(answer.ok() && answer->version == 7);
                  done(answer.status());
                });
    worker.Send(Server(0), {.generation = 1}, PayloadOf(gradient), send.Done());
    worker.Call(Server(0), {.id = 2}, PayloadOf(gradient), LandingOf(pulled),
                [done = calls[1].Done()](const absl::StatusOr<ReplyHeader>& answer) mutable {
                  done(answer.status());
                });
  });
  nodes[1].Recv(Worker(0), {.generation = 1}, LandingOf(posted), recv);
  EXPECT_EQ(calls[0].Wait(), absl::OkStatus());
  EXPECT_EQ(calls[1].Wait(), FailedPrecondition("no such range"));
  EXPECT_EQ(send.Wait(), absl::OkStatus());
  EXPECT_EQ(recv.Wait(), absl::OkStatus());
  EXPECT_EQ(pulled, parameters);
  EXPECT_EQ(posted, gradient);
}

// Four endpoints, two roles, all at once, many lanes, both kinds of size.
TEST_P(TcpWire, DeliversRandomTrafficExactly) {
  const std::uint64_t seed = 7;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  std::deque<TcpNode> nodes;
  nodes.emplace_back(Worker(0), kHashed, GetParam());
  nodes.emplace_back(Worker(1), kHashed, GetParam());
  nodes.emplace_back(Server(0), kHashed, GetParam());
  nodes.emplace_back(Server(1), kHashed, GetParam());
  const MessengerOptions options{.generation = 9, .eager_limit = 1000};
  Connect(nodes, options);
  struct Transfer {
    Storage sent, received;
    Ending send, recv;
  };
  std::deque<Transfer> transfers;
  for (std::uint32_t i = 0; i < 500; ++i) {
    Transfer& transfer = transfers.emplace_back();
    TcpNode& from = nodes[i % 4];
    TcpNode& to = nodes[(i % 4 + 1 + random.Below(3)) % 4];
    transfer.sent = RandomBytes(random.Below(4000), random);
    transfer.received.resize(transfer.sent.size());
    const Envelope envelope{
        .generation = 9, .lane = static_cast<std::uint32_t>(random.Below(5)), .part = i};
    if (random.Below(2) == 0) {
      from.Send(to.self(), envelope, PayloadOf(transfer.sent), transfer.send);
      to.Recv(from.self(), envelope, LandingOf(transfer.received), transfer.recv);
    } else {
      to.Recv(from.self(), envelope, LandingOf(transfer.received), transfer.recv);
      from.Send(to.self(), envelope, PayloadOf(transfer.sent), transfer.send);
    }
  }
  for (Transfer& transfer : transfers) {
    ASSERT_EQ(transfer.send.Wait(), absl::OkStatus());
    ASSERT_EQ(transfer.recv.Wait(), absl::OkStatus());
    ASSERT_EQ(transfer.received, transfer.sent);
  }
}

TEST_P(TcpWire, TellsOfAPeerThatClosed) {
  std::deque<TcpNode> nodes;
  nodes.emplace_back(Worker(0), kHashed, GetParam());
  nodes.emplace_back(Worker(1), kHashed, GetParam());
  nodes.emplace_back(Worker(2), kHashed, GetParam());
  Connect(nodes);
  Ending lost, pending, other, late;
  Storage landing(10);
  nodes[0].loop().RunAndWait([&] {
    nodes[0].messenger().OnLost(
        [done = lost.Done()](Endpoint peer, const absl::Status& why) mutable {
          EXPECT_EQ(peer, Worker(2));
          done(why);
        });
  });
  nodes[0].Recv(Worker(2), {.generation = 1}, LandingOf(landing), pending);
  nodes[0].Recv(Worker(1), {.generation = 1}, LandingOf(landing), other);
  nodes[2].Close();
  const absl::Status why = lost.Wait();
  EXPECT_TRUE(absl::IsUnavailable(why));
  EXPECT_THAT(MessageOf(why), HasSubstr("worker 2 closed the connection"));
  EXPECT_TRUE(absl::IsUnavailable(pending.Wait()));
  const Storage body(3);
  nodes[0].Send(Worker(2), {.generation = 1}, PayloadOf(body), late);
  EXPECT_TRUE(absl::IsUnavailable(late.Wait()));
  EXPECT_FALSE(other.HasEnded());
  nodes[0].Close();
  EXPECT_TRUE(absl::IsAborted(other.Wait()));
}

TEST_P(TcpWire, ReadsWhatAPeerSentBeforeItClosed) {
  std::deque<TcpNode> nodes;
  nodes.emplace_back(Worker(0), kHashed, GetParam());
  nodes.emplace_back(Worker(1), kHashed, GetParam());
  Connect(nodes);
  const Storage body = BytesOf("last words");
  Storage received(body.size());
  Ending send, recv;
  nodes[1].Send(Worker(0), {.generation = 1}, PayloadOf(body), send);
  ASSERT_TRUE(send.Wait().ok());
  nodes[1].Close();
  nodes[0].Recv(Worker(1), {.generation = 1}, LandingOf(received), recv);
  EXPECT_EQ(recv.Wait(), absl::OkStatus());
  EXPECT_EQ(received, body);
}

TEST_P(TcpWire, AbortEndsEverySendWithItsReason) {
  std::deque<TcpNode> nodes;
  nodes.emplace_back(Worker(0), kHashed, GetParam());
  nodes.emplace_back(Worker(1), kHashed, GetParam());
  nodes.emplace_back(Worker(2), kHashed, GetParam());
  Connect(nodes);
  const absl::Status reason = DeadlineExceeded("the coordinator gave up");
  const Storage body(10);
  Ending lost, sends[4];
  nodes[0].loop().RunAndWait([&] {
    nodes[0].messenger().OnLost(
        [done = lost.Done()](Endpoint, const absl::Status& why) mutable { done(why); });
  });
  nodes[2].Close();
  EXPECT_FALSE(lost.Wait().ok());
  MessageHeader header;
  header.size = 10;
  nodes[0].loop().RunAndWait([&] {
    Wire& wire = nodes[0].wire();
    wire.Send(Worker(1), header, PayloadOf(body), sends[0].Done());
    wire.Abort(reason);
    for (const Rank rank : {1, 2, 3}) {  // connected, lost, unknown
      wire.Send(Worker(rank), header, PayloadOf(body), sends[rank].Done());
    }
  });
  for (Ending& send : sends) {
    EXPECT_EQ(send.Wait(), reason);
  }
}

// While large bodies are on their way in both directions, the landings and bodies are freed the
// moment Abort has returned and the sends have ended: the address sanitizer sees a late touch.
TEST_P(TcpWire, AbortInMidTransferTouchesNothingAfterwards) {
  for (int round = 0; round < 10; ++round) {
    std::deque<TcpNode> nodes;
    nodes.emplace_back(Worker(0), kHashed, GetParam());
    nodes.emplace_back(Worker(1), kHashed, GetParam());
    Connect(nodes);
    auto body = std::make_unique<Storage>(2 << 20);
    auto landing = std::make_unique<Storage>(2 << 20);
    Ending send, recv, other_send, other_recv;
    Storage other_body(2 << 20), other_landing(2 << 20);
    nodes[1].Send(Worker(0), {.generation = 1}, PayloadOf(other_body), other_send);
    nodes[1].Recv(Worker(0), {.generation = 1}, LandingOf(other_landing), other_recv);
    nodes[0].Send(Worker(1), {.generation = 1}, PayloadOf(*body), send);
    nodes[0].Recv(Worker(1), {.generation = 1}, LandingOf(*landing), recv);
    std::this_thread::sleep_for(std::chrono::microseconds(50 * round));  // another moment each
    nodes[0].loop().RunAndWait([&] {
      nodes[0].messenger().Abort(Aborted("now"));
      landing.reset();
    });
    send.Wait().IgnoreError();
    body.reset();
    recv.Wait().IgnoreError();
    other_send.Wait().IgnoreError();
    other_recv.Wait().IgnoreError();
  }
}

}  // namespace
}  // namespace ranklab::transport
