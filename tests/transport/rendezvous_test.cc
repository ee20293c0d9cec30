// How endpoints of a generation find each other, on virtual time and streams without gRPC.
#include "transport/grpc/rendezvous.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/status.h"
#include "sim/virtual_loop.h"

namespace ranklab::transport {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Endpoint kWorker0{Role::kWorker, 0};
constexpr Endpoint kWorker1{Role::kWorker, 1};
constexpr Endpoint kServer0{Role::kServer, 0};
constexpr std::uint32_t kGeneration = 4;
constexpr std::uint64_t kSecret = 99;
constexpr Nanos kDeadline = std::chrono::seconds(5);

// A stream whose other side is the test.
class ScriptedStream final : public FrameStream {
 public:
  void Listen(StreamEvents* listener) override { events = listener; }
  void Read() override { reading = true; }
  void Write(OutgoingFrame frame) override { written.push_back(std::move(frame.prefix)); }
  void Close(const absl::Status& why) override {
    if (!closed.has_value()) {
      closed = why;
    }
  }
  std::string where() const override { return "the test"; }

  void Answer(const Hello& hello) {
    IncomingFrame incoming;
    incoming.frame.hello = hello;
    events->OnFrame(std::move(incoming));
  }

  StreamEvents* events = nullptr;
  bool reading = false;
  std::vector<std::string> written;
  std::optional<absl::Status> closed;
};

class RendezvousTest : public testing::Test {
 protected:
  void Begin(Endpoint self, const std::vector<WirePeer>& peers) {
    rendezvous_ = std::make_unique<Rendezvous>(
        loop_,
        WireOptions{.self = self,
                    .generation = kGeneration,
                    .secret = kSecret,
                    .peers = peers,
                    .deadline = kDeadline},
        [this](const std::string& address) {
          dialed_.emplace_back(address, std::make_shared<ScriptedStream>());
          return dialed_.back().second;
        },
        [this](Endpoint peer, std::shared_ptr<FrameStream>) { joined_.push_back(peer); },
        [this](absl::Status status) { ready_.push_back(status); });
  }

  static Hello From(Endpoint from, Endpoint to) {
    return {.generation = kGeneration, .secret = kSecret, .from = from, .to = to};
  }

  ScriptedStream& Dialed(std::size_t index) { return *dialed_.at(index).second; }

  sim::VirtualLoop loop_;
  std::vector<std::pair<std::string, std::shared_ptr<ScriptedStream>>> dialed_;
  std::vector<Endpoint> joined_;
  std::vector<absl::Status> ready_;
  std::unique_ptr<Rendezvous> rendezvous_;
};

TEST_F(RendezvousTest, DialsTheLargerAndAdmitsTheSmaller) {
  Begin(kWorker1, {{kWorker0, "a:1"}, {kServer0, "b:2"}});
  ASSERT_EQ(dialed_.size(), 1u);
  EXPECT_EQ(dialed_[0].first, "b:2");
  EXPECT_THAT(Dialed(0).written, ElementsAre(EncodeHello(From(kWorker1, kServer0))));

  auto stream = std::make_shared<ScriptedStream>();
  EXPECT_TRUE(rendezvous_->Admit(stream, From(kWorker0, kWorker1)).ok());
  EXPECT_THAT(stream->written, ElementsAre(EncodeHello(From(kWorker1, kWorker0))));
  EXPECT_THAT(joined_, IsEmpty());  // until the answer is written
  stream->events->OnWritten();
  EXPECT_THAT(joined_, ElementsAre(kWorker0));

  Dialed(0).Answer(From(kServer0, kWorker1));
  EXPECT_THAT(joined_, ElementsAre(kWorker0));  // until our hello is written
  Dialed(0).events->OnWritten();
  EXPECT_THAT(joined_, ElementsAre(kWorker0, kServer0));
  EXPECT_THAT(ready_, IsEmpty());  // never inline
  loop_.RunUntil(kDeadline * 2);
  EXPECT_THAT(ready_, ElementsAre(absl::OkStatus()));
}

TEST_F(RendezvousTest, DialsAgainWhenAStreamEndsForNoFinalReason) {
  Begin(kWorker0, {{kServer0, "b:2"}});
  Dialed(0).events->OnEnded(Unavailable("restarting"));
  EXPECT_EQ(dialed_.size(), 1u);
  loop_.RunUntil(std::chrono::seconds(1));
  ASSERT_EQ(dialed_.size(), 2u);
  Dialed(1).events->OnWritten();
  Dialed(1).Answer(From(kServer0, kWorker0));
  EXPECT_THAT(joined_, ElementsAre(kServer0));
  EXPECT_EQ(Dialed(0).closed.has_value(), true);
  EXPECT_EQ(Dialed(1).closed, std::nullopt);
}

TEST_F(RendezvousTest, EndsAtOnceWhenItIsRefusedForGood) {
  Begin(kWorker0, {{kWorker1, "a:1"}, {kServer0, "b:2"}});
  Dialed(1).events->OnEnded(FailedPrecondition("generation 4 is over here"));
  loop_.RunUntil(Nanos(0));
  ASSERT_EQ(ready_.size(), 1u);
  EXPECT_EQ(ready_[0].code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(MessageOf(ready_[0]),
            "server 0 at b:2 refused the tensor stream: generation 4 is over here");
  EXPECT_TRUE(Dialed(0).closed.has_value());
}

TEST_F(RendezvousTest, TheDeadlineNamesOnlyWhoIsMissing) {
  Begin(kWorker1, {{kWorker0, "a:1"}, {kServer0, "b:2"}});
  Dialed(0).events->OnWritten();
  Dialed(0).Answer(From(kServer0, kWorker1));
  loop_.RunUntil(kDeadline);
  ASSERT_EQ(ready_.size(), 1u);
  EXPECT_EQ(ready_[0], DeadlineExceeded("worker 1 has no tensor stream to worker 0 (a:1)"));
}

TEST_F(RendezvousTest, AnAnswerFromSomebodyElseIsNoPeer) {
  const std::vector<std::pair<Hello, std::string>> answers = {
      {From(kWorker1, kWorker0), "worker 1 answered at the address of server 0"},
      {From(kServer0, kWorker1), "meant for worker 1, here is worker 0"},
      {{.generation = 9, .secret = kSecret, .from = kServer0, .to = kWorker0}, "generation 9"},
      {{.generation = kGeneration, .secret = 1, .from = kServer0, .to = kWorker0},
       "not the secret"},
      {{.magic = 0, .generation = kGeneration, .from = kServer0, .to = kWorker0}, "wrong magic"},
  };
  for (const auto& [answer, reason] : answers) {
    dialed_.clear();
    ready_.clear();
    Begin(kWorker0, {{kServer0, "b:2"}});
    Dialed(0).events->OnWritten();
    Dialed(0).Answer(answer);
    loop_.RunUntil(loop_.Now());
    ASSERT_EQ(ready_.size(), 1u) << reason;
    EXPECT_THAT(MessageOf(ready_[0]), HasSubstr(reason));
    EXPECT_TRUE(Dialed(0).closed.has_value());
    EXPECT_THAT(joined_, IsEmpty());
  }
}

TEST_F(RendezvousTest, ASecondDialTakesThePlaceOfADeadOne) {
  Begin(kWorker1, {{kWorker0, "a:1"}});
  auto first = std::make_shared<ScriptedStream>();
  auto second = std::make_shared<ScriptedStream>();
  EXPECT_TRUE(rendezvous_->Admit(first, From(kWorker0, kWorker1)).ok());
  EXPECT_TRUE(rendezvous_->Admit(second, From(kWorker0, kWorker1)).ok());
  EXPECT_TRUE(first->closed.has_value());
  second->events->OnWritten();
  EXPECT_THAT(joined_, ElementsAre(kWorker0));
  auto third = std::make_shared<ScriptedStream>();
  EXPECT_EQ(rendezvous_->Admit(third, From(kWorker0, kWorker1)).code(),
            absl::StatusCode::kAlreadyExists);
}

TEST_F(RendezvousTest, AnAdmittedStreamThatDiesIsAwaitedAgain) {
  Begin(kWorker1, {{kWorker0, "a:1"}});
  auto first = std::make_shared<ScriptedStream>();
  EXPECT_TRUE(rendezvous_->Admit(first, From(kWorker0, kWorker1)).ok());
  first->events->OnEnded(Unavailable("gone"));
  auto second = std::make_shared<ScriptedStream>();
  EXPECT_TRUE(rendezvous_->Admit(second, From(kWorker0, kWorker1)).ok());
  second->events->OnWritten();
  loop_.RunUntil(Nanos(0));
  EXPECT_THAT(ready_, ElementsAre(absl::OkStatus()));
}

TEST_F(RendezvousTest, CancelClosesEverythingAndNothingJoinsAfterwards) {
  Begin(kWorker1, {{kWorker0, "a:1"}, {kServer0, "b:2"}});
  rendezvous_->Cancel(Aborted("stopped"));
  EXPECT_TRUE(Dialed(0).closed.has_value());
  EXPECT_EQ(Dialed(0).events, nullptr);
  auto late = std::make_shared<ScriptedStream>();
  EXPECT_FALSE(rendezvous_->Admit(late, From(kWorker0, kWorker1)).ok());
  loop_.RunUntil(kDeadline * 2);
  EXPECT_THAT(ready_, ElementsAre(Aborted("stopped")));
  EXPECT_THAT(joined_, IsEmpty());
}

TEST_F(RendezvousTest, DestroyingItEndsItsTimersAndTellsReadyOnce) {
  Begin(kWorker0, {{kServer0, "b:2"}});
  Dialed(0).events->OnEnded(Unavailable("restarting"));
  rendezvous_.reset();
  loop_.RunUntil(kDeadline * 2);
  EXPECT_EQ(dialed_.size(), 1u);
  ASSERT_EQ(ready_.size(), 1u);
  EXPECT_EQ(ready_[0].code(), absl::StatusCode::kAborted);
}

TEST_F(RendezvousTest, APeerLostBeforeTheOthersStandEndsIt) {
  Begin(kWorker0, {{kWorker1, "a:1"}, {kServer0, "b:2"}});
  rendezvous_->Lost(Unavailable("worker 1 at a:1: the connection is gone"));
  loop_.RunUntil(Nanos(0));
  EXPECT_THAT(ready_, ElementsAre(Unavailable("worker 1 at a:1: the connection is gone")));
}

}  // namespace
}  // namespace ranklab::transport
