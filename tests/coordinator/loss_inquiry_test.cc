#include "coordinator/loss_inquiry.h"

#include <gtest/gtest.h>

#include "core/status.h"

namespace ranklab::coordinator {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Endpoint Worker(Rank rank) { return {.role = Role::kWorker, .rank = rank}; }

LossInquiry Inquiry() {
  return LossInquiry({.report_grace = milliseconds(300), .symptom_grace = seconds(6)});
}

TEST(LossInquiry, FindsNothingWithoutEvidence) {
  EXPECT_FALSE(Inquiry().Decide(false, seconds(100)).has_value());
}

TEST(LossInquiry, GivesTheCulpritsOwnSessionAMomentToEnd) {
  LossInquiry inquiry = Inquiry();
  inquiry.Report(Worker(1), Worker(2), "connection reset", 14, seconds(1));
  EXPECT_FALSE(inquiry.Decide(false, seconds(1) + milliseconds(299)).has_value());
  const auto finding = inquiry.Decide(false, seconds(1) + milliseconds(300));
  ASSERT_TRUE(finding.has_value());
  EXPECT_EQ(finding->whom, Worker(2));
  EXPECT_TRUE(finding->reported);
  EXPECT_EQ(finding->evidence, "worker 1 reports: connection reset");
}

TEST(LossInquiry, WaitsForSuspicionWhileSomeoneIsSilent) {
  LossInquiry inquiry = Inquiry();
  inquiry.Report(Worker(0), Worker(1), "connection reset", 14, seconds(1));
  EXPECT_FALSE(inquiry.Decide(true, seconds(6)).has_value());
  EXPECT_TRUE(inquiry.Decide(true, seconds(7)).has_value()) << "but not for ever";
}

// Worker 2 died; 1 and 3 saw it, gave up, and 0 then saw both of them go.
TEST(LossInquiry, TheChainOfThoseWhoGiveUpStartsAtTheLostOne) {
  LossInquiry inquiry = Inquiry();
  inquiry.Report(Worker(0), Worker(1), "connection reset", 14, milliseconds(10));
  inquiry.Report(Worker(1), Worker(2), "connection reset", 14, milliseconds(11));
  inquiry.Report(Worker(0), Worker(3), "connection reset", 14, milliseconds(12));
  inquiry.Report(Worker(3), Worker(2), "end of file", 15, milliseconds(13));
  EXPECT_EQ(inquiry.Decide(false, seconds(1))->whom, Worker(2));
  EXPECT_EQ(inquiry.LatestStep(Worker(2)), 15);
  EXPECT_EQ(inquiry.LatestStep(Worker(0)), 0);
}

TEST(LossInquiry, AReporterHasOneVoiceAboutAPeer) {
  LossInquiry inquiry = Inquiry();
  inquiry.Report(Worker(1), Worker(2), "connection reset", 14, milliseconds(10));
  inquiry.Report(Worker(0), Worker(3), "connection reset", 14, milliseconds(11));
  inquiry.Report(Worker(0), Worker(3), "connection reset", 14, milliseconds(12));
  EXPECT_EQ(inquiry.Decide(false, seconds(1))->whom, Worker(2));
}

TEST(LossInquiry, ASymptomAloneWaitsForTheSuspicionTime) {
  LossInquiry inquiry = Inquiry();
  inquiry.Symptom(Worker(3), DeadlineExceeded("no bucket 3 from worker 2 for 30 s"), seconds(1));
  inquiry.Symptom(Worker(1), DeadlineExceeded("no bucket 3 from worker 2 for 30 s"), seconds(2));
  EXPECT_FALSE(inquiry.Decide(false, seconds(6)).has_value());
  const auto finding = inquiry.Decide(false, seconds(7));
  ASSERT_TRUE(finding.has_value());
  EXPECT_EQ(finding->whom, Worker(3));
  EXPECT_FALSE(finding->reported);
  EXPECT_EQ(finding->evidence, "no bucket 3 from worker 2 for 30 s");
}

}  // namespace
}  // namespace ranklab::coordinator
