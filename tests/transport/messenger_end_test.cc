// Limits, losses and aborts: how operations end without their message.
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/status.h"
#include "tests/transport/messenger_cluster.h"
#include "transport/messenger.h"

namespace ranklab::transport {
namespace {

using ::testing::HasSubstr;

constexpr MessengerOptions kSmallLimits{.eager_limit = 8, .eager_bytes_per_peer = 32};

TEST(MessengerEnd, EndsAPeerWhoseUnmatchedMessagesExceedTheLimit) {
  MessengerCluster cluster(kSmallLimits);
  const Storage sent(8);
  std::vector<Outcome> sends(5);
  absl::Status lost;
  cluster.At(Worker(1)).OnLost([&](Endpoint peer, const absl::Status& why) {
    EXPECT_EQ(peer, Worker(0));
    lost = why;
  });
  for (std::uint32_t i = 0; i < 5; ++i) {
    cluster.At(Worker(0)).Send(Worker(1), {.part = i}, PayloadOf(sent), sends[i].Done());
  }
  cluster.Run();
  EXPECT_TRUE(absl::IsResourceExhausted(lost)) << lost;
  EXPECT_THAT(MessageOf(lost), HasSubstr("32"));

  // What was kept can still be received; what comes later cannot.
  Storage received(8);
  Outcome kept, later;
  cluster.At(Worker(1)).Recv(Worker(0), {.part = 2}, LandingOf(received), kept.Done());
  cluster.At(Worker(1)).Recv(Worker(0), {.part = 4}, LandingOf(received), later.Done());
  cluster.Run();
  EXPECT_TRUE(kept.ok());
  EXPECT_TRUE(absl::IsUnavailable(*later.status));
}

TEST(MessengerEnd, ReceivesMakeRoomForMoreUnmatchedMessages) {
  MessengerCluster cluster(kSmallLimits);
  const Storage sent(8);
  Storage received(8);
  for (std::uint32_t i = 0; i < 20; ++i) {
    Outcome send, recv;
    cluster.At(Worker(1));
    cluster.At(Worker(0)).Send(Worker(1), {.part = i}, PayloadOf(sent), send.Done());
    cluster.Run();
    cluster.At(Worker(1)).Recv(Worker(0), {.part = i}, LandingOf(received), recv.Done());
    cluster.Run();
    ASSERT_TRUE(recv.ok()) << i;
  }
}

TEST(MessengerEnd, DropsAndCountsMessagesOfAnotherGeneration) {
  MessengerCluster cluster;
  Messenger& old = cluster.At(Worker(0), {.generation = 1});
  Messenger& current = cluster.At(Worker(1), {.generation = 2});
  const Storage sent = BytesOf("old");
  Storage received(3);
  Outcome send, recv;
  bool called = false;
  bool served = false;
  current.Serve([&](Endpoint, const RequestHeader&, Payload, AnswerFn) { served = true; });
  current.Recv(Worker(0), {.generation = 2}, LandingOf(received), recv.Done());
  old.Send(Worker(1), {.generation = 1}, PayloadOf(sent), send.Done());
  old.Call(Worker(1), {.id = 1}, PayloadOf(sent), {},
           [&](const absl::StatusOr<ReplyHeader>&) { called = true; });
  cluster.Run();
  EXPECT_TRUE(recv.pending());
  EXPECT_FALSE(called || served);
  EXPECT_EQ(current.dropped_messages(), 2);
  EXPECT_EQ(received, Storage(3));
  cluster.At(Worker(0)).Abort(Aborted("end of the test"));
  current.Abort(Aborted("end of the test"));
  cluster.Run();
}

TEST(MessengerEnd, EndsEveryOperationOfALostPeer) {
  MessengerCluster cluster(kSmallLimits);
  Messenger& messenger = cluster.At(Worker(0));
  cluster.At(Worker(1)).Serve([](Endpoint, const RequestHeader&, Payload, AnswerFn) {});
  const Storage large(20);
  Storage landing(20), other(4);
  Outcome held, recv, of_another_peer;
  std::vector<std::string> order;
  absl::StatusOr<ReplyHeader> answer = ReplyHeader{};
  messenger.OnLost([&](Endpoint peer, const absl::Status&) { order.push_back(NameOf(peer)); });
  messenger.Send(Worker(1), {}, PayloadOf(large), held.Done());
  messenger.Recv(Worker(1), {}, LandingOf(landing), recv.Done());
  messenger.Recv(Worker(2), {}, LandingOf(other), of_another_peer.Done());
  cluster.Kill(Worker(1));
  messenger.Call(Worker(1), {.id = 1}, {}, {}, [&](absl::StatusOr<ReplyHeader> result) {
    order.push_back("call");
    answer = std::move(result);
  });
  cluster.Run();
  EXPECT_EQ(order, (std::vector<std::string>{"worker 1", "call"}));
  EXPECT_TRUE(absl::IsUnavailable(answer.status()));
  for (const Outcome* ended : {&held, &recv}) {
    ASSERT_EQ(ended->runs, 1);
    EXPECT_TRUE(absl::IsUnavailable(*ended->status));
    EXPECT_THAT(MessageOf(*ended->status), HasSubstr("worker 1 is lost"));
  }
  EXPECT_TRUE(of_another_peer.pending());

  Outcome later;
  messenger.Send(Worker(1), {}, PayloadOf(large), later.Done());
  cluster.Run();
  EXPECT_TRUE(absl::IsUnavailable(*later.status));
  messenger.Abort(Aborted("end of the test"));
  cluster.Run();
}

TEST(MessengerEnd, AbortEndsPendingAndLaterOperationsWithItsReason) {
  MessengerCluster cluster(kSmallLimits);
  Messenger& messenger = cluster.At(Worker(0));
  cluster.At(Worker(1));
  const Storage large(20), small(2);
  Storage landing(20);
  std::vector<Outcome> ended(5);
  std::vector<absl::StatusOr<ReplyHeader>> answers;
  const auto answered = [&](absl::StatusOr<ReplyHeader> answer) { answers.push_back(answer); };
  messenger.Send(Worker(1), {}, PayloadOf(large), ended[0].Done());
  messenger.Send(Worker(1), {.lane = 1}, PayloadOf(small), ended[1].Done());
  messenger.Recv(Worker(1), {}, LandingOf(landing), ended[2].Done());
  messenger.Call(Worker(1), {.id = 1}, PayloadOf(small), {}, answered);
  messenger.Abort(Aborted("the membership changed"));
  messenger.Send(Worker(1), {}, PayloadOf(small), ended[3].Done());
  messenger.Recv(Worker(1), {}, LandingOf(landing), ended[4].Done());
  messenger.Call(Worker(1), {.id = 2}, {}, {}, answered);
  cluster.Run();
  for (const Outcome& outcome : ended) {
    ASSERT_EQ(outcome.runs, 1);
    EXPECT_EQ(*outcome.status, Aborted("the membership changed"));
  }
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0].status(), Aborted("the membership changed"));
  EXPECT_EQ(answers[1].status(), Aborted("the membership changed"));
}

TEST(MessengerEnd, CallbacksMayAbortAndDestroyTheMessenger) {
  MessengerCluster cluster;
  const Storage sent = BytesOf("x");
  Storage received(1), unmatched(1);
  Outcome send, other;
  int runs = 0;
  cluster.At(Worker(1)).Recv(Worker(0), {}, LandingOf(received), [&](const absl::Status& status) {
    EXPECT_TRUE(status.ok());
    ++runs;
    cluster.loop().Post([&] { cluster.Destroy(Worker(1)); });
    cluster.At(Worker(1)).Abort(Aborted("done"));
  });
  cluster.At(Worker(1)).Recv(Worker(0), {.lane = 9}, LandingOf(unmatched), other.Done());
  cluster.At(Worker(0)).Send(Worker(1), {}, PayloadOf(sent), send.Done());
  cluster.Run();
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(*other.status, Aborted("done"));
}

}  // namespace
}  // namespace ranklab::transport
