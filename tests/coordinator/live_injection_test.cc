#include "coordinator/live_injection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/status.h"

namespace ranklab::coordinator {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;

v1::InjectRequest Asking(const std::string& text) {
  v1::InjectRequest request;
  request.set_text(text);
  return request;
}

TEST(LiveInjection, SaysModelledAndWallTime) {
  const auto pause =
      PrepareInjection(Asking("{rank: 2, pause: 500ms}"), {.workers = 4, .time_scale = 100});
  ASSERT_TRUE(pause.ok()) << pause.status();
  EXPECT_EQ(pause->description, "500 ms modelled = 50 s here");
  const auto link =
      PrepareInjection(Asking("{link: 1-2, latency: 5ms}"), {.workers = 4, .time_scale = 20});
  ASSERT_TRUE(link.ok()) << link.status();
  EXPECT_EQ(link->description, "5 ms modelled = 100 ms here");
}

TEST(LiveInjection, IsPlainWhereTimeIsNotDilated) {
  EXPECT_EQ(PrepareInjection(Asking("{rank: 2, pause: 500ms}"), {.workers = 4, .time_scale = 1})
                ->description,
            "500 ms");
}

TEST(LiveInjection, RefusesMoreThanAMinuteOfWallTimeUnlessAllowed) {
  v1::InjectRequest request = Asking("{rank: 2, pause: 500ms}");
  const auto refused = PrepareInjection(request, {.workers = 4, .time_scale = 1000});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(refused.status()), HasSubstr("500 ms modelled = 500 s here"));
  EXPECT_THAT(MessageOf(refused.status()), HasSubstr("--wall"));
  request.set_wall(true);
  EXPECT_TRUE(PrepareInjection(request, {.workers = 4, .time_scale = 1000}).ok());
}

TEST(LiveInjection, RefusesARankThatTheCellDoesNotHave) {
  const auto refused =
      PrepareInjection(Asking("{rank: 4, kill: true}"), {.workers = 4, .time_scale = 1});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MessageOf(refused.status()),
            "the running cell has no rank 4; it has 4 workers, ranks from 0");
  EXPECT_FALSE(
      PrepareInjection(Asking("{link: 1-7, latency: 5ms}"), {.workers = 4, .time_scale = 1}).ok());
}

TEST(LiveInjection, RefusesAServerThatTheCellDoesNotHave) {
  const InjectedCell cell{.workers = 4, .servers = 2};
  EXPECT_TRUE(PrepareInjection(Asking("{link: 1-ps1, latency: 5ms}"), cell).ok());
  EXPECT_EQ(MessageOf(PrepareInjection(Asking("{link: 1-ps2, latency: 5ms}"), cell).status()),
            "the running cell has no ps2; its last server is ps1");
  EXPECT_EQ(
      MessageOf(PrepareInjection(Asking("{link: 1-ps0, latency: 5ms}"), {.workers = 4}).status()),
      "the running cell has no ps0: it has no servers; a link is between two workers, such as 0-1");
}

TEST(LiveInjection, RefusesALinkThatTheCellDoesNotUse) {
  EXPECT_THAT(
      MessageOf(PrepareInjection(Asking("{link: 1-2, latency: 5ms}"), {.workers = 4, .servers = 1})
                    .status()),
      AllOf(HasSubstr("changes nothing"), EndsWith("such as 1-ps0")));
}

TEST(LiveInjection, RefusesWhatIsNoEntryOfAScenario) {
  EXPECT_EQ(PrepareInjection(Asking("{rank: 2, explode: true}"), {.workers = 4, .time_scale = 1})
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(LiveInjection, ResetNeedsNoText) {
  v1::InjectRequest request;
  request.set_reset(true);
  const auto reset = PrepareInjection(request, {.workers = 4, .time_scale = 1000});
  ASSERT_TRUE(reset.ok()) << reset.status();
  EXPECT_EQ(reset->text, "{reset: true}");
}

TEST(LiveInjection, DurationsReadAsPeopleWriteThem) {
  EXPECT_EQ(TextOf(std::chrono::microseconds(10)), "10 us");
  EXPECT_EQ(TextOf(std::chrono::microseconds(2500)), "2.5 ms");
  EXPECT_EQ(TextOf(std::chrono::seconds(50)), "50 s");
}

}  // namespace
}  // namespace ranklab::coordinator
