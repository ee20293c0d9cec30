#include "ps/server.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include <gtest/gtest.h>

#include "ps/protocol.h"
#include "tests/ps/shard_bench.h"

namespace ranklab::ps {
namespace {

using transport::ReplyHeader;
using transport::RequestHeader;

class HandedOver final : public transport::Responder {
 public:
  void Serve(transport::RequestFn handler, transport::BodyLandingFn landing) override {
    handler_ = std::move(handler);
    landing_ = std::move(landing);
  }
  transport::RequestFn& handler() { return handler_; }
  transport::BodyLandingFn& landing() { return landing_; }

 private:
  transport::RequestFn handler_;
  transport::BodyLandingFn landing_;
};

struct Answered {
  int runs = 0;
  absl::StatusOr<ReplyHeader> reply = Unavailable("not answered");
  std::vector<float> values;
  DoneFn sent;
};

// Elements [4, 8), two workers.
class ServerTest : public testing::Test {
 protected:
  static constexpr KeyRange kRange{4, 8};

  void Make(std::int64_t bound) {
    shard_.emplace(loop_, ShardOptions{.range = kRange, .worker_count = 2, .bound = {bound}},
                   CountingFactory());
    server_.emplace(loop_, responder_, **shard_, 2);
  }

  // `size` of the body, if it is not that of the values.
  std::shared_ptr<Answered> Ask(Endpoint from, const RequestHeader& request,
                                const std::vector<float>& values = {},
                                std::optional<Bytes> size = std::nullopt) {
    auto answered = std::make_shared<Answered>();
    // A copy that goes at once: the body is valid only during the call.
    std::vector<float> body = values;
    responder_.handler()(
        from, request,
        {reinterpret_cast<const std::byte*>(body.data()),
         size.value_or(static_cast<Bytes>(body.size() * sizeof(float)))},
        [answered](absl::StatusOr<ReplyHeader> reply, transport::Payload payload, DoneFn sent) {
          ++answered->runs;
          answered->reply = std::move(reply);
          answered->values.resize(static_cast<std::size_t>(payload.size) / sizeof(float));
          if (payload.size > 0) {
            std::memcpy(answered->values.data(), payload.data,
                        static_cast<std::size_t>(payload.size));
          }
          answered->sent = std::move(sent);
        });
    std::fill(body.begin(), body.end(), -1.0F);
    return answered;
  }

  static RequestHeader Header(Method method, Step step, KeyRange part) {
    return {.method = static_cast<std::uint32_t>(method),
            .step = step,
            .begin = part.begin,
            .end = part.end};
  }
  static RequestHeader LastPush(Step step, KeyRange part, double weight = 1.0) {
    RequestHeader header = Header(Method::kPush, step, part);
    header.ends_step = true;
    header.weight = weight;
    return header;
  }
  static Endpoint Worker(Rank rank) { return {Role::kWorker, rank}; }

  sim::VirtualLoop loop_;
  HandedOver responder_;
  std::optional<HostedShard> shard_;
  std::optional<Server> server_;
};

using Values = std::vector<float>;

TEST_F(ServerTest, PushesAreAnsweredAtOnceAndPullsWhenTheGateOpens) {
  Make(0);
  EXPECT_TRUE(Ask(Worker(0), Header(Method::kPush, 1, {4, 6}), {1, 2})->reply.ok());
  EXPECT_TRUE(Ask(Worker(0), LastPush(1, {6, 8}), {3, 4})->reply.ok());
  const auto pull = Ask(Worker(0), Header(Method::kPull, 2, {5, 8}));
  loop_.Run();
  EXPECT_EQ(pull->runs, 0);
  EXPECT_TRUE(Ask(Worker(1), LastPush(1, kRange), {10, 10, 10, 10})->reply.ok());
  loop_.Run();
  ASSERT_TRUE(pull->reply.ok());
  EXPECT_EQ(pull->values, (Values{12, 13, 14}));
  EXPECT_EQ(pull->reply->clock, 1);
  EXPECT_EQ(pull->reply->version, 1);
  EXPECT_FALSE(pull->reply->skipped);
  EXPECT_EQ(pull->runs, 1);
}

TEST_F(ServerTest, APushLandsWhereItIsSummed) {
  Make(0);
  const RequestHeader push = Header(Method::kPush, 1, {5, 8});
  const transport::Landing landing = responder_.landing()(Worker(0), push, 12);
  ASSERT_NE(landing.data, nullptr);
  const Values values = {1, 2, 3};
  std::memcpy(landing.data, values.data(), 12);
  absl::StatusOr<ReplyHeader> pushed = Unavailable("not answered");
  responder_.handler()(Worker(0), push, {landing.data, 12},
                       [&](absl::StatusOr<ReplyHeader> reply, transport::Payload, DoneFn) {
                         pushed = std::move(reply);
                       });
  EXPECT_TRUE(pushed.ok());
  EXPECT_TRUE(Ask(Worker(0), LastPush(1, {4, 5}), {7})->reply.ok());
  EXPECT_TRUE(Ask(Worker(1), LastPush(1, kRange), {10, 10, 10, 10})->reply.ok());
  loop_.Run();
  EXPECT_EQ(Ask(Worker(1), Header(Method::kPull, 2, kRange))->values, (Values{17, 11, 12, 13}));
}

// Its bytes must not touch what was counted, or what is nobody's.
TEST_F(ServerTest, WhatIsNotANewPushLandsElsewhere) {
  Make(0);
  EXPECT_TRUE(Ask(Worker(0), Header(Method::kPush, 1, {4, 6}), {1, 2})->reply.ok());
  const auto landing = [&](Endpoint from, const RequestHeader& request, Bytes size) {
    return responder_.landing()(from, request, size).data;
  };
  EXPECT_EQ(landing(Worker(0), Header(Method::kPush, 1, {4, 6}), 8), nullptr) << "counted";
  EXPECT_EQ(landing(Worker(0), Header(Method::kPush, 1, {5, 7}), 8), nullptr) << "partly";
  EXPECT_EQ(landing(Worker(0), Header(Method::kPush, 2, {6, 8}), 8), nullptr) << "too early";
  EXPECT_EQ(landing(Worker(0), Header(Method::kPush, 1, {6, 8}), 12), nullptr) << "wrong size";
  EXPECT_EQ(landing(Worker(0), Header(Method::kPush, 1, {7, 9}), 8), nullptr) << "out of range";
  EXPECT_EQ(landing(Worker(0), Header(Method::kPull, 1, {6, 8}), 8), nullptr);
  EXPECT_EQ(landing(Worker(2), Header(Method::kPush, 1, {6, 8}), 8), nullptr) << "a stranger";
  EXPECT_NE(landing(Worker(0), Header(Method::kPush, 1, {6, 8}), 8), nullptr);
  EXPECT_EQ(landing(Worker(0), Header(Method::kPush, 1, {6, 8}), 8), nullptr) << "on its way";
}

TEST_F(ServerTest, WhatReadersOfOneVersionGetOutlivesTheNext) {
  Make(1);
  for (Step step = 1; step <= 2; ++step) {
    for (const Rank worker : {0, 1}) {
      EXPECT_TRUE(Ask(Worker(worker), LastPush(step, kRange), {1, 1, 1, 1})->reply.ok());
      loop_.Run();
    }
  }
  transport::Payload first;
  transport::Payload second;
  std::vector<DoneFn> sent;
  const auto pull = [&](Rank worker, transport::Payload& into) {
    responder_.handler()(
        Worker(worker), Header(Method::kPull, 3, kRange), {},
        [&](const absl::StatusOr<ReplyHeader>&, transport::Payload body, DoneFn done) {
          into = body;
          sent.push_back(std::move(done));
        });
  };
  pull(0, first);
  pull(1, second);
  EXPECT_EQ(first.data, second.data) << "one copy for both";
  const Values before(reinterpret_cast<const float*>(first.data),
                      reinterpret_cast<const float*>(first.data) + 4);
  EXPECT_TRUE(Ask(Worker(0), LastPush(3, kRange), {5, 5, 5, 5})->reply.ok());
  loop_.Run();
  const auto newer = Ask(Worker(1), Header(Method::kPull, 3, kRange));
  EXPECT_NE(newer->values, before);
  EXPECT_EQ(Values(reinterpret_cast<const float*>(second.data),
                   reinterpret_cast<const float*>(second.data) + 4),
            before);
  for (DoneFn& done : sent) {
    done(absl::OkStatus());
  }
}

TEST_F(ServerTest, ARetryIsAnsweredWithSuccessAndNotCounted) {
  Make(0);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(Ask(Worker(0), Header(Method::kPush, 1, {4, 6}), {1, 2})->reply.ok());
    EXPECT_TRUE(Ask(Worker(1), LastPush(1, kRange), {10, 10, 10, 10})->reply.ok());
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(Ask(Worker(0), LastPush(1, {6, 8}), {3, 4})->reply.ok());
  }
  loop_.Run();
  EXPECT_EQ(Ask(Worker(1), Header(Method::kPull, 2, kRange))->values, (Values{11, 12, 13, 14}));
  const ServerReport report = server_->Report();
  EXPECT_EQ(report.pushes, 3);
  EXPECT_EQ(report.bytes_pushed, 32);
  EXPECT_EQ(report.duplicates, 6);
  EXPECT_EQ(report.refused, 0);
}

TEST_F(ServerTest, NonsenseIsAnsweredWithInvalidArgumentAndChangesNothing) {
  Make(0);
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  const Values four(4, 9.0F);
  int asked = 0;
  const auto expect_refused = [&](const std::shared_ptr<Answered>& answered) {
    ++asked;
    EXPECT_EQ(answered->runs, 1);
    EXPECT_TRUE(absl::IsInvalidArgument(answered->reply.status()))
        << answered->reply.status().ToString();
  };
  expect_refused(Ask({Role::kServer, 0}, Header(Method::kPush, 1, kRange), four));
  expect_refused(Ask(Worker(-1), Header(Method::kPush, 1, kRange), four));
  expect_refused(Ask(Worker(2), Header(Method::kPush, 1, kRange), four));
  expect_refused(Ask(Worker(0), Header(static_cast<Method>(0), 1, kRange), four));
  expect_refused(Ask(Worker(0), Header(static_cast<Method>(0xffffffff), 1, kRange), four));
  for (const KeyRange part : {KeyRange{0, 4},
                              {5, 9},
                              {8, 4},
                              {kMin, kMax},
                              {kMax, kMin},
                              {4, kMax},
                              {kMin, 8},
                              {kMax, kMax}}) {
    expect_refused(Ask(Worker(0), Header(Method::kPush, 1, part), four));
    expect_refused(Ask(Worker(0), Header(Method::kPull, 1, part)));
  }
  expect_refused(Ask(Worker(0), Header(Method::kPush, 1, kRange), four, 15));
  expect_refused(Ask(Worker(0), Header(Method::kPush, 1, kRange), four, 0));
  expect_refused(Ask(Worker(0), Header(Method::kPush, 1, {4, 4}), four, 1));
  expect_refused(Ask(Worker(0), Header(Method::kPull, 1, kRange), four));
  for (const Step step : {Step{0}, Step{-1}, Step{2}, kMax, kMin}) {
    expect_refused(Ask(Worker(0), Header(Method::kPush, step, kRange), four));
  }
  for (const Step step : {Step{0}, Step{-1}, Step{3}, kMax, kMin}) {
    expect_refused(Ask(Worker(0), Header(Method::kPull, step, kRange)));
  }
  ASSERT_TRUE(Ask(Worker(0), Header(Method::kPush, 1, kRange), {1, 1, 1, 1})->reply.ok());
  for (const double weight : {std::nan(""), -1.0, HUGE_VAL, 1e-300}) {
    expect_refused(Ask(Worker(0), LastPush(1, {4, 4}, weight)));
  }
  EXPECT_EQ(server_->Report().refused, asked);
  EXPECT_TRUE(Ask(Worker(0), LastPush(1, {4, 4}))->reply.ok());
  EXPECT_TRUE(Ask(Worker(1), LastPush(1, kRange), {1, 1, 1, 1})->reply.ok());
  loop_.Run();
  EXPECT_EQ(Ask(Worker(0), Header(Method::kPull, 2, kRange))->values, Values(4, 2.0F));
}

TEST_F(ServerTest, AnEndWithoutAllPartsIsFailedPrecondition) {
  Make(0);
  EXPECT_TRUE(
      absl::IsFailedPrecondition(Ask(Worker(0), LastPush(1, {4, 6}), {1, 2})->reply.status()));
  // What came with it is counted, and the end may come again.
  EXPECT_TRUE(Ask(Worker(0), LastPush(1, {6, 8}), {3, 4})->reply.ok());
}

TEST_F(ServerTest, CountsStalenessOfEveryReadByWorker) {
  Make(2);
  const Values ones(4, 1.0F);
  for (Step step = 1; step <= 2; ++step) {
    Ask(Worker(0), LastPush(step, kRange), ones);
    loop_.Run();
    ASSERT_EQ(Ask(Worker(0), Header(Method::kPull, step + 1, kRange))->runs, 1);
  }
  Ask(Worker(1), Header(Method::kPull, 1, kRange));
  Ask(Worker(1), Header(Method::kPull, 1, {4, 5}));
  const ServerReport report = server_->Report();
  using Histogram = std::map<std::int64_t, std::int64_t>;
  EXPECT_EQ(report.staleness[0], (Histogram{{1, 1}, {2, 1}}));
  EXPECT_EQ(report.staleness[1], (Histogram{{0, 2}}));
  EXPECT_EQ(report.pulls, 4);
  EXPECT_EQ(report.bytes_pulled, (4 + 4 + 4 + 1) * 4);
  EXPECT_EQ(report.updates, 2);
}

TEST_F(ServerTest, AnAnswersBytesStayUntilSent) {
  Make(StalenessBound::kUnbounded);
  transport::Payload kept;
  DoneFn sent;
  responder_.handler()(
      Worker(0), Header(Method::kPull, 1, kRange), {},
      [&](const absl::StatusOr<ReplyHeader>&, transport::Payload body, DoneFn done) {
        kept = body;
        sent = std::move(done);
      });
  Ask(Worker(1), LastPush(1, kRange), Values(4, 5.0F));
  loop_.Run();
  EXPECT_EQ(*shard_->parameters(), 5.0F);
  const Values zeros(4, 0.0F);
  EXPECT_EQ(std::memcmp(kept.data, zeros.data(), 16), 0);
  sent(absl::OkStatus());
}

TEST_F(ServerTest, LeavingIsCountedOnceAndOpensTheGate) {
  Make(0);
  Ask(Worker(0), LastPush(1, kRange), Values(4, 1.0F));
  const auto pull = Ask(Worker(0), Header(Method::kPull, 2, kRange));
  EXPECT_TRUE(Ask(Worker(1), Header(Method::kLeave, 0, {4, 4}))->reply.ok());
  EXPECT_TRUE(Ask(Worker(1), Header(Method::kLeave, 0, {4, 4}))->reply.ok());
  loop_.Run();
  EXPECT_EQ(pull->values, Values(4, 1.0F));
}

TEST_F(ServerTest, RequestsAfterItsEndAreUnavailableAndParkedOnesAreForgotten) {
  Make(0);
  Ask(Worker(0), LastPush(1, kRange), Values(4, 1.0F));
  const auto parked = Ask(Worker(0), Header(Method::kPull, 2, kRange));
  server_.reset();
  EXPECT_TRUE(
      absl::IsUnavailable(Ask(Worker(0), Header(Method::kPull, 1, kRange))->reply.status()));
  (*shard_)->Remove(1);
  loop_.Run();
  EXPECT_EQ(parked->runs, 0);
}

}  // namespace
}  // namespace ranklab::ps
