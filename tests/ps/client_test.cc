#include "ps/client.h"

#include <deque>
#include <optional>

#include <gtest/gtest.h>

#include "core/status.h"

namespace ranklab::ps {
namespace {

using transport::RequestHeader;

// Keeps calls until the test answers them.
class Kept final : public transport::Requester {
 public:
  struct Held {
    Endpoint to;
    RequestHeader header;
    transport::Payload body;
    transport::Landing reply;
    transport::AnsweredFn done;
  };

  void Call(Endpoint to, const RequestHeader& header, transport::Payload body,
            transport::Landing reply, transport::AnsweredFn done) override {
    held.push_back({to, header, body, reply, std::move(done)});
  }
  void Answer(std::size_t index, absl::StatusOr<transport::ReplyHeader> reply) {
    held.at(index).done(std::move(reply));
  }

  std::deque<Held> held;
};

class ClientTest : public testing::Test {
 protected:
  // Ten elements: [0, 4) [4, 7) [7, 10).
  void Make(Rank worker, Bytes message = 8) {
    client_.emplace(
        requester_,
        ClientOptions{
            .worker = worker, .generation = 7, .ranges = CutEvenly(10, 3), .message = message});
  }
  DoneFn Done() {
    return [this](absl::Status status) {
      ++runs_;
      status_ = std::move(status);
    };
  }
  std::vector<std::pair<Rank, KeyRange>> Sent() const {
    std::vector<std::pair<Rank, KeyRange>> sent;
    for (const Kept::Held& held : requester_.held) {
      EXPECT_EQ(held.to.role, Role::kServer);
      sent.emplace_back(held.to.rank, KeyRange{held.header.begin, held.header.end});
    }
    return sent;
  }

  Kept requester_;
  std::optional<Client> client_;
  int runs_ = 0;
  absl::Status status_;
};

using Pieces = std::vector<std::pair<Rank, KeyRange>>;

TEST_F(ClientTest, APushIsCutByServerAndMessageBeginningAtTheWorkersOwnServer) {
  Make(/*worker=*/4);  // of three servers, it begins at server 1
  std::vector<float> gradients(10);
  client_->Push(3, {1, 10}, gradients.data() + 1, Done());
  EXPECT_EQ(
      Sent(),
      (Pieces{{1, {4, 6}}, {1, {6, 7}}, {2, {7, 9}}, {2, {9, 10}}, {0, {1, 3}}, {0, {3, 4}}}));
  std::uint64_t last_id = 0;
  for (const Kept::Held& held : requester_.held) {
    EXPECT_EQ(held.body.data, reinterpret_cast<std::byte*>(gradients.data() + held.header.begin));
    EXPECT_EQ(held.body.size, (held.header.end - held.header.begin) * 4);
    EXPECT_EQ(held.header.method, static_cast<std::uint32_t>(Method::kPush));
    EXPECT_EQ(held.header.generation, 7U);
    EXPECT_EQ(held.header.step, 3);
    EXPECT_FALSE(held.header.ends_step);
    EXPECT_GT(held.header.id, last_id);
    last_id = held.header.id;
  }
}

TEST_F(ClientTest, TheEndGoesToEveryServerWithNothingElse) {
  Make(0);
  client_->EndStep(3, {.weight = 32.0, .overflow = true}, Done());
  EXPECT_EQ(Sent(), (Pieces{{0, {0, 0}}, {1, {4, 4}}, {2, {7, 7}}}));
  for (const Kept::Held& held : requester_.held) {
    EXPECT_TRUE(held.header.ends_step);
    EXPECT_TRUE(held.header.overflow);
    EXPECT_EQ(held.header.weight, 32.0);
    EXPECT_EQ(held.body.size, 0);
  }
}

TEST_F(ClientTest, DoneRunsOnceAfterTheLastAnswerWithTheFirstErrorByName) {
  Make(0, 1024);
  std::vector<float> gradients(10);
  client_->Push(12, {0, 10}, gradients.data(), Done());
  requester_.Answer(1, Unavailable("connection reset"));
  requester_.Answer(0, Internal("later"));
  EXPECT_EQ(runs_, 0) << "server 2 may still read the gradients";
  requester_.Answer(2, transport::ReplyHeader{});
  EXPECT_EQ(runs_, 1);
  EXPECT_EQ(status_, Unavailable("push of step 12 to server 1: connection reset"));
}

TEST_F(ClientTest, APullAsksForAllAtOnceAndSaysTheOldestOfWhatItRead) {
  Make(2, 1024);
  std::vector<float> into(10);
  std::optional<Pulled> pulled;
  client_->Pull(5, {0, 10}, into.data(), [&](absl::StatusOr<Pulled> result) { pulled = *result; });
  EXPECT_EQ(Sent(), (Pieces{{2, {7, 10}}, {0, {0, 4}}, {1, {4, 7}}}));
  for (const Kept::Held& held : requester_.held) {
    EXPECT_EQ(held.reply.data, reinterpret_cast<std::byte*>(into.data() + held.header.begin));
    EXPECT_EQ(held.reply.size, (held.header.end - held.header.begin) * 4);
    EXPECT_EQ(held.body.size, 0);
  }
  requester_.Answer(0, transport::ReplyHeader{.clock = 4, .version = 9});
  requester_.Answer(1, transport::ReplyHeader{.clock = 3, .version = 11, .skipped = true});
  EXPECT_FALSE(pulled.has_value());
  requester_.Answer(2, transport::ReplyHeader{.clock = 5, .version = 10});
  ASSERT_TRUE(pulled.has_value());
  EXPECT_EQ(pulled->clock, 3);
  EXPECT_EQ(pulled->version, 9);
  EXPECT_TRUE(pulled->skipped);
}

TEST_F(ClientTest, EachServersShareIsToldWithItsLastAnswerAndBeforeDone) {
  Make(0);
  std::vector<float> gradients(10);
  std::vector<std::pair<Rank, Bytes>> shares;
  std::size_t shares_at_done = 0;
  client_->Push(
      1, {0, 6}, gradients.data(), [&](absl::Status) { shares_at_done = shares.size(); },
      [&](Share share) { shares.emplace_back(share.server, share.bytes); });
  ASSERT_EQ(requester_.held.size(), 3U);  // two messages to server 0, one to server 1
  requester_.Answer(0, transport::ReplyHeader{});
  EXPECT_TRUE(shares.empty());
  requester_.Answer(2, transport::ReplyHeader{});
  requester_.Answer(1, transport::ReplyHeader{});
  EXPECT_EQ(shares, (std::vector<std::pair<Rank, Bytes>>{{1, 8}, {0, 16}}));
  EXPECT_EQ(shares_at_done, 2U);
  client_->Push(2, {0, 4}, gradients.data(), Done(), [&](Share) { ADD_FAILURE(); });
  requester_.Answer(3, Unavailable("connection reset"));
  requester_.Answer(4, Unavailable("connection reset"));
  EXPECT_EQ(runs_, 1);
}

TEST_F(ClientTest, NamesWhomItWaitsFor) {
  Make(0, 4);
  EXPECT_EQ(client_->WaitingFor(), "nobody");
  std::vector<float> into(10);
  client_->EndStep(11, {}, Done());
  client_->Pull(12, {5, 7}, into.data(), [](const absl::StatusOr<Pulled>&) {});
  client_->Leave(Done());
  requester_.Answer(0, transport::ReplyHeader{});
  requester_.Answer(2, transport::ReplyHeader{});
  requester_.Answer(3, transport::ReplyHeader{});  // one of two messages of the pull
  requester_.Answer(5, transport::ReplyHeader{});
  EXPECT_EQ(client_->WaitingFor(),
            "server 1 (end of step 11), server 1 (pull of step 12), server 1 (leave request), "
            "server 2 (leave request)");
}

TEST_F(ClientTest, WithNothingToSendItIsDoneAtOnce) {
  Make(0);
  client_->Push(1, {4, 4}, nullptr, Done());
  EXPECT_EQ(runs_, 1);
  client_->Pull(1, {4, 4}, nullptr,
                [this](const absl::StatusOr<Pulled>& pulled) { runs_ += pulled.ok() ? 1 : 0; });
  EXPECT_EQ(runs_, 2);
  EXPECT_TRUE(requester_.held.empty());
}

TEST_F(ClientTest, CallbacksRunAlsoWhenItIsGone) {
  Make(0);
  client_->EndStep(1, {}, Done());
  client_.reset();
  for (std::size_t i = 0; i < 3; ++i) {
    requester_.Answer(i, Aborted("generation 7 has ended"));
  }
  EXPECT_EQ(runs_, 1);
  EXPECT_EQ(status_, Aborted("end of step 1 to server 0: generation 7 has ended"));
}

}  // namespace
}  // namespace ranklab::ps
