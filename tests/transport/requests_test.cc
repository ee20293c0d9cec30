// Calls and answers of the Messenger.
#include "transport/requests.h"

#include <optional>
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

using ::testing::AllOf;
using ::testing::HasSubstr;

class Requests : public ::testing::Test {
 protected:
  AnsweredFn Keep() {
    return [this](absl::StatusOr<ReplyHeader> result) { answers.push_back(std::move(result)); };
  }

  MessengerCluster cluster;
  Messenger& server = cluster.At(Server(0));
  Messenger& worker = cluster.At(Worker(0));
  std::vector<absl::StatusOr<ReplyHeader>> answers;
};

TEST_F(Requests, CarryHeaderAndBodyThereAndBack) {
  const Storage pushed = BytesOf("gradient"), parameters = BytesOf("new weights");
  Storage pulled(parameters.size());
  Outcome answer_sent;
  server.Serve([&](Endpoint from, const RequestHeader& header, Payload body, AnswerFn answer) {
    EXPECT_EQ(from, Worker(0));
    EXPECT_EQ(header.method, 2U);
    EXPECT_EQ(header.step, 12);
    EXPECT_EQ(header.begin, 100);
    EXPECT_EQ(header.end, 108);
    EXPECT_EQ(header.weight, 32.0);
    EXPECT_TRUE(header.ends_step);
    EXPECT_TRUE(header.overflow);
    EXPECT_EQ(Storage(body.data, body.data + body.size), pushed);
    answer(ReplyHeader{.clock = 11, .version = 9, .skipped = true}, PayloadOf(parameters),
           answer_sent.Done());
  });
  worker.Call(Server(0),
              {.method = 2,
               .id = 77,
               .step = 12,
               .begin = 100,
               .end = 108,
               .weight = 32.0,
               .ends_step = true,
               .overflow = true},
              PayloadOf(pushed), LandingOf(pulled), Keep());
  EXPECT_TRUE(answers.empty()) << "a callback ran inside the call";
  cluster.Run();
  ASSERT_EQ(answers.size(), 1U);
  ASSERT_TRUE(answers[0].ok()) << answers[0].status();
  EXPECT_EQ(answers[0]->clock, 11);
  EXPECT_EQ(answers[0]->version, 9);
  EXPECT_TRUE(answers[0]->skipped);
  EXPECT_EQ(pulled, parameters);
  EXPECT_TRUE(answer_sent.ok());
}

TEST_F(Requests, ABodyLandsWhereTheServiceWantsIt) {
  const Storage body = BytesOf("gradient");
  Storage place(body.size());
  std::vector<const std::byte*> handled;
  server.Serve(
      [&](Endpoint, const RequestHeader&, Payload landed, AnswerFn answer) {
        EXPECT_EQ(Storage(landed.data, landed.data + landed.size), body);
        handled.push_back(landed.data);
        answer(ReplyHeader{}, {}, [](const absl::Status&) {});
      },
      [&](Endpoint from, const RequestHeader& header, Bytes size) {
        EXPECT_EQ(from, Worker(0));
        EXPECT_EQ(size, static_cast<Bytes>(body.size()));
        return header.method == 1 ? LandingOf(place) : Landing{nullptr, size};
      });
  worker.Call(Server(0), {.method = 1, .id = 1}, PayloadOf(body), {}, Keep());
  worker.Call(Server(0), {.method = 2, .id = 2}, PayloadOf(body), {}, Keep());
  cluster.Run();
  ASSERT_EQ(handled.size(), 2U);
  EXPECT_EQ(handled[0], place.data());
  EXPECT_NE(handled[1], place.data());
}

TEST_F(Requests, AreAnsweredLaterAndInAnyOrder) {
  std::vector<std::pair<std::uint64_t, AnswerFn>> parked;
  server.Serve([&](Endpoint, const RequestHeader& header, Payload, AnswerFn answer) {
    parked.emplace_back(header.id, std::move(answer));
  });
  std::vector<std::uint64_t> versions;
  for (std::uint64_t id = 1; id <= 3; ++id) {
    worker.Call(Server(0), {.id = id}, {}, {}, [&](absl::StatusOr<ReplyHeader> answer) {
      versions.push_back(static_cast<std::uint64_t>(answer->version));
    });
  }
  cluster.Run();
  ASSERT_EQ(parked.size(), 3U);
  for (const std::size_t i : {2U, 0U, 1U}) {
    parked[i].second(ReplyHeader{.version = static_cast<std::int64_t>(parked[i].first)}, {},
                     [](const absl::Status& sent) { EXPECT_TRUE(sent.ok()); });
  }
  cluster.Run();
  EXPECT_EQ(versions, (std::vector<std::uint64_t>{3, 1, 2}));
}

TEST_F(Requests, BringErrorsBackWithCodeAndAtMostAKibibyteOfText) {
  server.Serve([&](Endpoint, const RequestHeader& header, Payload, AnswerFn answer) {
    answer(FailedPrecondition("%s", header.id == 1 ? "no such range" : std::string(5000, 'x')), {},
           [](const absl::Status&) {});
  });
  worker.Call(Server(0), {.id = 1}, {}, {}, Keep());
  worker.Call(Server(0), {.id = 2}, {}, {}, Keep());
  cluster.Run();
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0].status(), FailedPrecondition("no such range"));
  EXPECT_EQ(MessageOf(answers[1].status()), std::string(1024, 'x'));
}

TEST_F(Requests, NameBothSizesWhenTheAnswerIsNotWhatTheCallExpects) {
  const Storage four(4, std::byte{1});
  server.Serve([&](Endpoint, const RequestHeader&, Payload, AnswerFn answer) {
    answer(ReplyHeader{}, PayloadOf(four), [](const absl::Status&) {});
  });
  Storage landing(6);
  worker.Call(Server(0), {.id = 1}, {}, LandingOf(landing), Keep());
  cluster.Run();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_TRUE(absl::IsInvalidArgument(answers[0].status()));
  EXPECT_THAT(MessageOf(answers[0].status()), AllOf(HasSubstr("4 bytes"), HasSubstr("expects 6")));
  EXPECT_EQ(landing, Storage(6));
}

TEST_F(Requests, AreAnsweredInternalWhenTheServiceForgetsThem) {
  server.Serve([](Endpoint, const RequestHeader&, Payload, AnswerFn) {});
  worker.Call(Server(0), {.id = 1}, {}, {}, Keep());
  cluster.Run();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_TRUE(absl::IsInternal(answers[0].status()));
  EXPECT_THAT(MessageOf(answers[0].status()), HasSubstr("server 0"));
}

TEST_F(Requests, AreRefusedWhereNobodyServes) {
  worker.Call(Server(0), {.id = 1}, {}, {}, Keep());
  cluster.Run();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_TRUE(absl::IsUnimplemented(answers[0].status()));
}

TEST_F(Requests, WithThePendingIdOfAnotherAreRefused) {
  std::vector<AnswerFn> parked;
  server.Serve([&](Endpoint, const RequestHeader&, Payload, AnswerFn answer) {
    parked.push_back(std::move(answer));
  });
  worker.Call(Server(0), {.id = 1}, {}, {}, Keep());
  worker.Call(Server(0), {.id = 1}, {}, {}, Keep());
  cluster.Run();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_TRUE(absl::IsFailedPrecondition(answers[0].status()));
  ASSERT_EQ(parked.size(), 1U);
  parked[0](ReplyHeader{}, {}, [](const absl::Status&) {});
  cluster.Run();
  EXPECT_EQ(answers.size(), 2U);
}

TEST_F(Requests, OfALostWorkerAreAnsweredIntoTheVoid) {
  std::vector<AnswerFn> parked;
  server.Serve([&](Endpoint, const RequestHeader&, Payload, AnswerFn answer) {
    parked.push_back(std::move(answer));
  });
  worker.Call(Server(0), {.id = 1}, {}, {}, Keep());
  worker.Call(Server(0), {.id = 2}, {}, {}, Keep());
  cluster.Run();
  ASSERT_EQ(parked.size(), 2U);
  cluster.Kill(Worker(0));
  cluster.Run();
  const Storage parameters(100);
  Outcome sent;
  parked[0](ReplyHeader{}, PayloadOf(parameters), sent.Done());
  EXPECT_TRUE(sent.pending());
  parked.clear();  // and the second is forgotten
  cluster.Run();
  EXPECT_TRUE(absl::IsUnavailable(*sent.status));
}

TEST_F(Requests, OutliveTheMessengerTheyCameFrom) {
  std::optional<AnswerFn> parked;
  server.Serve([&](Endpoint, const RequestHeader&, Payload, AnswerFn answer) {
    parked = std::move(answer);
  });
  worker.Call(Server(0), {.id = 1}, {}, {}, Keep());
  cluster.Run();
  ASSERT_TRUE(parked.has_value());
  cluster.Destroy(Server(0));
  Outcome sent;
  (*parked)(ReplyHeader{}, {}, sent.Done());
  cluster.Run();
  EXPECT_TRUE(absl::IsAborted(*sent.status));
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_TRUE(absl::IsUnavailable(answers[0].status()));
}

TEST_F(Requests, LargerThanAnyServiceAllowsEndTheConnection) {
  absl::Status lost;
  Messenger& strict = cluster.At(Server(1), {.request_limit = 100});
  strict.OnLost([&](Endpoint, const absl::Status& why) { lost = why; });
  const Storage body(101);
  worker.Call(Server(1), {.id = 1}, PayloadOf(body), {}, Keep());
  cluster.Run();
  EXPECT_TRUE(absl::IsInvalidArgument(lost));
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_TRUE(absl::IsUnavailable(answers[0].status()));
}

}  // namespace
}  // namespace ranklab::transport
