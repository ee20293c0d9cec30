#include "transport/messenger.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/status.h"
#include "tests/transport/messenger_cluster.h"

namespace ranklab::transport {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr MessengerOptions kSmallLimits{.eager_limit = 8, .eager_bytes_per_peer = 32};

TEST(Messenger, DeliversToAReceivePostedBefore) {
  MessengerCluster cluster;
  const Storage sent = BytesOf("gradient");
  Storage received(sent.size());
  Outcome send, recv;
  cluster.At(Worker(1)).Recv(Worker(0), {.lane = 3}, LandingOf(received), recv.Done());
  cluster.At(Worker(0)).Send(Worker(1), {.lane = 3}, PayloadOf(sent), send.Done());
  EXPECT_TRUE(send.pending() && recv.pending()) << "a callback ran inside the call";
  cluster.Run();
  EXPECT_TRUE(send.ok());
  EXPECT_TRUE(recv.ok());
  EXPECT_EQ(received, sent);
}

TEST(Messenger, KeepsASmallMessageUntilItsReceiveIsPosted) {
  MessengerCluster cluster;
  const Storage sent = BytesOf("early");
  Storage received(sent.size());
  Outcome send, recv;
  cluster.At(Worker(1));
  cluster.At(Worker(0)).Send(Worker(1), {.lane = 3}, PayloadOf(sent), send.Done());
  cluster.Run();
  EXPECT_TRUE(send.ok());
  cluster.At(Worker(1)).Recv(Worker(0), {.lane = 3}, LandingOf(received), recv.Done());
  EXPECT_TRUE(recv.pending()) << "a callback ran inside the call";
  cluster.Run();
  EXPECT_TRUE(recv.ok());
  EXPECT_EQ(received, sent);
}

TEST(Messenger, HoldsALargeMessageUntilItsReceiveIsPosted) {
  MessengerCluster cluster(kSmallLimits);
  const Storage sent = BytesOf("more than eight bytes");
  Storage received(sent.size());
  Outcome send, recv;
  cluster.At(Worker(1));
  cluster.At(Worker(0)).Send(Worker(1), {}, PayloadOf(sent), send.Done());
  cluster.Run();
  EXPECT_TRUE(send.pending());
  EXPECT_EQ(cluster.wire(Worker(0)).counters(Worker(1)).body_sent, 0);
  cluster.At(Worker(1)).Recv(Worker(0), {}, LandingOf(received), recv.Done());
  cluster.Run();
  EXPECT_TRUE(send.ok());
  EXPECT_TRUE(recv.ok());
  EXPECT_EQ(received, sent);
}

TEST(Messenger, SendsALargeMessageAtOnceWhenTheCreditIsThere) {
  MessengerCluster cluster(kSmallLimits);
  const Storage sent = BytesOf("more than eight bytes");
  Storage received(sent.size());
  Outcome send, recv;
  cluster.At(Worker(0));
  cluster.At(Worker(1)).Recv(Worker(0), {}, LandingOf(received), recv.Done());
  cluster.Run();
  cluster.At(Worker(0)).Send(Worker(1), {}, PayloadOf(sent), send.Done());
  cluster.Run();
  EXPECT_TRUE(send.ok());
  EXPECT_TRUE(recv.ok());
  EXPECT_EQ(received, sent);
}

// Sender and receiver disagree about the size, one above and one below the eager limit: whoever is
// first, the receive ends within two seconds with peer, place and both sizes, and nobody is left
// waiting.
TEST(Messenger, ALargeMessageForASmallReceiveIsAnErrorSoon) {
  for (const bool receive_first : {true, false}) {
    SCOPED_TRACE(receive_first);
    MessengerCluster cluster(kSmallLimits);
    const Storage sent(20);
    Storage received(5);
    Outcome send, recv;
    const Envelope envelope{.group = 4, .sequence = 7, .lane = 2, .part = 1};
    const auto post = [&] {
      cluster.At(Worker(1)).Recv(Worker(0), envelope, LandingOf(received), recv.Done());
      cluster.Run();
    };
    cluster.At(Worker(1));
    if (receive_first) {
      post();
    }
    cluster.At(Worker(0)).Send(Worker(1), envelope, PayloadOf(sent), send.Done());
    if (!receive_first) {
      cluster.loop().RunUntil(cluster.loop().Now() + std::chrono::milliseconds(1500));
      EXPECT_TRUE(send.pending());
      post();
    }
    cluster.Run();
    EXPECT_LT(cluster.loop().Now(), std::chrono::seconds(4));
    ASSERT_FALSE(recv.pending());
    EXPECT_EQ(
        MessageOf(*recv.status),
        "from worker 0: the message has 20 bytes, its receive expects 5 (group 4, sequence 7, "
        "lane 2, part 1)");
    EXPECT_FALSE(send.pending());
  }
}

// Two of one envelope, both too large: one receive takes one of them.
TEST(Messenger, ASmallReceiveGivesCreditOnce) {
  MessengerCluster cluster(kSmallLimits);
  const Storage sent(20);
  Storage received(5);
  Outcome sends[2], recvs[2];
  cluster.At(Worker(1)).Recv(Worker(0), {}, LandingOf(received), recvs[0].Done());
  for (Outcome& send : sends) {
    cluster.At(Worker(0)).Send(Worker(1), {}, PayloadOf(sent), send.Done());
  }
  cluster.loop().RunUntil(cluster.loop().Now() + std::chrono::seconds(2));
  EXPECT_FALSE(recvs[0].pending());
  EXPECT_TRUE(sends[1].pending());
  cluster.At(Worker(1)).Recv(Worker(0), {}, LandingOf(received), recvs[1].Done());
  cluster.Run();
  ASSERT_FALSE(recvs[1].pending());
  EXPECT_THAT(MessageOf(*recvs[1].status), HasSubstr("20 bytes"));
}

// A held message is no reason to tell anybody anything, as long as its credit comes soon.
TEST(Messenger, WhatIsHeldForAMomentCostsNoMessage) {
  MessengerCluster cluster(kSmallLimits);
  const Storage sent(20);
  Storage received(20);
  Outcome send, recv;
  cluster.At(Worker(1));
  cluster.At(Worker(0)).Send(Worker(1), {}, PayloadOf(sent), send.Done());
  cluster.At(Worker(1)).Recv(Worker(0), {}, LandingOf(received), recv.Done());
  cluster.Run();
  EXPECT_FALSE(recv.pending());
  EXPECT_EQ(cluster.wire(Worker(0)).counters(Worker(1)).messages_sent, 1);
  EXPECT_LT(cluster.loop().Now(), std::chrono::seconds(1)) << "nothing is left to wait for";
}

TEST(Messenger, ASmallMessageForALargeReceiveIsAnErrorAtOnce) {
  MessengerCluster cluster(kSmallLimits);
  const Storage sent(5);
  Storage received(20);
  Outcome send, recv;
  cluster.At(Worker(1)).Recv(Worker(0), {.lane = 2}, LandingOf(received), recv.Done());
  cluster.At(Worker(0)).Send(Worker(1), {.lane = 2}, PayloadOf(sent), send.Done());
  cluster.Run();
  ASSERT_FALSE(recv.pending());
  EXPECT_THAT(MessageOf(*recv.status),
              AllOf(HasSubstr("from worker 0"), HasSubstr("5 bytes"), HasSubstr("expects 20")));
  EXPECT_FALSE(send.pending());
}

TEST(Messenger, AHeldMessageBlocksNoOtherLane) {
  MessengerCluster cluster(kSmallLimits);
  const Storage large(20), small = BytesOf("small");
  Storage received(small.size());
  Outcome held, send, recv;
  cluster.At(Worker(1)).Recv(Worker(0), {.lane = 2}, LandingOf(received), recv.Done());
  cluster.At(Worker(0)).Send(Worker(1), {.lane = 1}, PayloadOf(large), held.Done());
  cluster.At(Worker(0)).Send(Worker(1), {.lane = 2}, PayloadOf(small), send.Done());
  cluster.Run();
  EXPECT_TRUE(held.pending());
  EXPECT_TRUE(recv.ok());
  EXPECT_EQ(received, small);
}

TEST(Messenger, MatchesByTheWholeEnvelopeAndThePeer) {
  MessengerCluster cluster;
  const std::vector<Envelope> envelopes{
      {.group = 0, .sequence = 1}, {.group = 1, .sequence = 1}, {.group = 0, .sequence = 2},
      {.sequence = 1, .lane = 1},  {.sequence = 1, .part = 1},
  };
  std::vector<Storage> sent, received(2 * envelopes.size(), Storage(1));
  for (std::size_t i = 0; i < received.size(); ++i) {
    sent.push_back({static_cast<std::byte>(i)});
  }
  std::vector<Outcome> recvs(received.size()), sends(received.size());
  for (std::size_t i = 0; i < received.size(); ++i) {
    const std::size_t reversed = received.size() - 1 - i;  // posted in the opposite order
    cluster.At(Worker(2)).Recv(Worker(reversed % 2), envelopes[reversed / 2],
                               LandingOf(received[reversed]), recvs[reversed].Done());
  }
  for (std::size_t i = 0; i < received.size(); ++i) {
    cluster.At(Worker(i % 2))
        .Send(Worker(2), envelopes[i / 2], PayloadOf(sent[i]), sends[i].Done());
  }
  cluster.Run();
  EXPECT_EQ(received, sent);
}

TEST(Messenger, EqualEnvelopesMatchInOrder) {
  MessengerCluster cluster;
  const Storage first = BytesOf("1"), second = BytesOf("2"), third = BytesOf("3");
  std::vector<Storage> received(3, Storage(1));
  std::vector<Outcome> recvs(3), sends(3);
  Messenger& receiver = cluster.At(Worker(1));
  receiver.Recv(Worker(0), {}, LandingOf(received[0]), recvs[0].Done());
  cluster.At(Worker(0)).Send(Worker(1), {}, PayloadOf(first), sends[0].Done());
  cluster.At(Worker(0)).Send(Worker(1), {}, PayloadOf(second), sends[1].Done());
  cluster.At(Worker(0)).Send(Worker(1), {}, PayloadOf(third), sends[2].Done());
  cluster.Run();
  receiver.Recv(Worker(0), {}, LandingOf(received[1]), recvs[1].Done());
  receiver.Recv(Worker(0), {}, LandingOf(received[2]), recvs[2].Done());
  cluster.Run();
  EXPECT_EQ(received, (std::vector<Storage>{first, second, third}));
}

TEST(Messenger, MovesEmptyMessagesAndSizesWithoutBytes) {
  MessengerCluster cluster(kSmallLimits);
  Outcome empty_send, empty_recv, sized_send, sized_recv;
  cluster.At(Worker(0)).Send(Worker(1), {.lane = 1}, {}, empty_send.Done());
  cluster.At(Worker(0)).Send(Worker(1), {.lane = 2}, {nullptr, 1 << 20}, sized_send.Done());
  cluster.At(Worker(1)).Recv(Worker(0), {.lane = 1}, {}, empty_recv.Done());
  cluster.At(Worker(1)).Recv(Worker(0), {.lane = 2}, {nullptr, 1 << 20}, sized_recv.Done());
  cluster.Run();
  EXPECT_TRUE(empty_send.ok() && empty_recv.ok() && sized_send.ok() && sized_recv.ok());
  EXPECT_EQ(cluster.wire(Worker(1)).counters(Worker(0)).body_received, 1 << 20);
}

TEST(Messenger, NamesBothSizesWhenTheyDiffer) {
  for (const bool receive_first : {true, false}) {
    MessengerCluster cluster;
    const Storage sent = BytesOf("12345");
    Storage received(7, std::byte{9});
    Outcome send, recv;
    if (receive_first) {
      cluster.At(Worker(1)).Recv(Worker(0), {}, LandingOf(received), recv.Done());
    }
    cluster.At(Worker(1));
    cluster.At(Worker(0)).Send(Worker(1), {}, PayloadOf(sent), send.Done());
    cluster.Run();
    if (!receive_first) {
      cluster.At(Worker(1)).Recv(Worker(0), {}, LandingOf(received), recv.Done());
      cluster.Run();
    }
    ASSERT_FALSE(recv.pending());
    EXPECT_TRUE(absl::IsInvalidArgument(*recv.status));
    EXPECT_THAT(MessageOf(*recv.status), AllOf(HasSubstr("5 bytes"), HasSubstr("expects 7")));
    EXPECT_EQ(received, Storage(7, std::byte{9})) << "bytes of the wrong message were written";
  }
}

}  // namespace
}  // namespace ranklab::transport
