// A lab from beginning to end on virtual time: who is assigned what, in which order, and what the
// client hears.
#include "coordinator/conductor.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/coordinator/lab_on_paper.h"

namespace ranklab::coordinator {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class ConductorTest : public ConductorBench, public testing::Test {
 protected:
  std::vector<v1::RunEvent> EventsOf(v1::RunEvent::KindCase kind) const {
    std::vector<v1::RunEvent> chosen;
    for (const v1::RunEvent& event : events) {
      if (event.kind_case() == kind) {
        chosen.push_back(event);
      }
    }
    return chosen;
  }

  void RunToTheEnd() {
    for (int generation = 0; generation < 100 && !end; ++generation) {
      AllReady();
      AllDone();
    }
    ASSERT_TRUE(end.has_value());
  }
};

TEST_F(ConductorTest, RunsACellAndTellsTheVerdict) {
  AddWorkers(2);
  Conduct(LabOf("scale", {{.workers = 2}}));
  const v1::Assignment& first = assignments[workers[0]];
  EXPECT_EQ(first.rank(), 0);
  EXPECT_EQ(assignments[workers[1]].rank(), 1);
  EXPECT_EQ(first.workers_size(), 2);
  EXPECT_EQ(first.lab_text(), "name: compare");
  EXPECT_EQ(first.lab_hash(), "0123");
  EXPECT_EQ(first.lab_name(), "labs/compare.yaml");
  EXPECT_EQ(first.part(), "scale");
  EXPECT_EQ(first.time_scale(), 1.0);
  EXPECT_EQ(first.secret(), assignments[workers[1]].secret());
  EXPECT_EQ(Nanos(first.timeout_ns()), seconds(60));

  Ready(workers[0]);
  EXPECT_EQ(CountOf(v1::CoordinatorMessage::kGo, workers[0]), 0) << "not all are ready";
  Ready(workers[1]);
  EXPECT_EQ(CountOf(v1::CoordinatorMessage::kGo, workers[0]), 1);
  EXPECT_EQ(CountOf(v1::CoordinatorMessage::kGo, workers[1]), 1);

  Row(workers[1], 1);
  Result(workers[1]);
  EXPECT_FALSE(end.has_value());
  now += seconds(3);
  Result(workers[0]);
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->exit_code, 0);
  EXPECT_FALSE(end->dismiss_pool);

  std::vector<v1::RunEvent::KindCase> kinds;
  for (const v1::RunEvent& event : events) {
    kinds.push_back(event.kind_case());
  }
  EXPECT_THAT(kinds,
              ElementsAre(v1::RunEvent::kPlanned, v1::RunEvent::kStarted, v1::RunEvent::kRows,
                          v1::RunEvent::kEnded, v1::RunEvent::kVerdict));
  EXPECT_EQ(events[2].rows().rank(), 1);
  EXPECT_DOUBLE_EQ(events[3].ended().wall_seconds(), 3.0);
  EXPECT_EQ(events[3].ended().workers_size(), 2);
  EXPECT_EQ(events[3].ended().code(), 0);
}

TEST_F(ConductorTest, RepeatsAreInterleavedOverTheCellsOfAPart) {
  AddWorkers(2);
  experiment::Lab lab = LabOf("learn", {{.workers = 1}, {.workers = 2}}, 2);
  experiment::Lab second = LabOf("scale", {{.workers = 2}}, 2);
  lab.parts.push_back(second.parts[0]);
  Conduct(std::move(lab));
  RunToTheEnd();
  std::vector<std::pair<int, int>> order;
  std::set<std::uint32_t> generations;
  for (const v1::RunEvent& event : EventsOf(v1::RunEvent::kStarted)) {
    order.emplace_back(event.started().cell(), event.started().repeat());
    generations.insert(event.started().generation());
    EXPECT_EQ(event.started().run(), static_cast<int>(order.size()));
  }
  using Run = std::pair<int, int>;
  EXPECT_THAT(order, ElementsAre(Run(0, 1), Run(1, 1), Run(0, 2), Run(1, 2), Run(2, 1), Run(2, 2)));
  EXPECT_THAT(generations, SizeIs(6));
  EXPECT_EQ(EventsOf(v1::RunEvent::kPlanned)[0].planned().runs(), 6);
  EXPECT_EQ(EventsOf(v1::RunEvent::kPlanned)[0].planned().cells(), 3);
  EXPECT_EQ(EventsOf(v1::RunEvent::kPlanned)[0].planned().steps(), 60);
}

// What a run's start-up is counted from: the last join, then the end of the run before.
TEST_F(ConductorTest, ACellSaysSinceWhenTheClusterWasFreeForIt) {
  Conduct(LabOf("scale", {{.workers = 2}}, 2));
  AddWorkers(1);
  now += seconds(2);
  AddWorkers(1);
  const Nanos joined = now;
  now += milliseconds(50);
  Carry(conductor->Tick(now));
  AllReady();
  now += seconds(3);
  AllDone();
  const std::vector<v1::RunEvent> started = EventsOf(v1::RunEvent::kStarted);
  ASSERT_THAT(started, SizeIs(2));
  EXPECT_EQ(Nanos(started[0].started().at_ns()), joined);
  EXPECT_EQ(Nanos(started[1].started().at_ns()), now);
}

TEST_F(ConductorTest, OnlyParameterServerCellsHaveServersAndABaselineHasOneWorker) {
  AddWorkers(2);
  AddServers(2);
  Conduct(LabOf("scale", {{.workers = 2, .with_servers = true},
                          {.workers = 2},
                          {.workers = 2, .with_servers = true, .baseline = true}}));
  EXPECT_THAT(Assigned(), SizeIs(4));
  EXPECT_EQ(assignments[servers[1]].role(), v1::ROLE_SERVER);
  EXPECT_EQ(assignments[servers[1]].rank(), 1);
  AllReady();
  AllDone();
  EXPECT_THAT(Assigned(), ElementsAre(workers[0], workers[1]));
  AllReady();
  AllDone();
  EXPECT_THAT(Assigned(), ElementsAre(workers[0]));
  AllReady();
  AllDone();
  EXPECT_EQ(end->exit_code, 0);
}

TEST_F(ConductorTest, WaitsForTheMembersOfTheLargestCell) {
  AddWorkers(1);
  Conduct(LabOf("scale", {{.workers = 1}, {.workers = 2}}));
  EXPECT_THAT(assignments, IsEmpty());
  Pass(seconds(9));
  EXPECT_THAT(assignments, IsEmpty());
  AddWorkers(1);
  EXPECT_THAT(Assigned(), SizeIs(1));
}

TEST_F(ConductorTest, TooFewMembersEndTheLabBeforeAnythingStarts) {
  AddWorkers(2);
  Conduct(LabOf("scale", {{.workers = 4}}));
  Pass(seconds(10));
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->exit_code, 3);
  EXPECT_EQ(VerdictText(), "too few members after 10 s: compare needs 4 workers, 2 joined");
  EXPECT_FALSE(end->dismiss_pool) << "nobody was lost";
  EXPECT_THAT(sent, IsEmpty());
}

TEST_F(ConductorTest, ACellOfAllWorkersTakesWhoHasJoinedOnceNobodyElseDoes) {
  AddWorkers(1);
  Conduct(LabOf("scale", {{.workers = 0}}));
  Pass(milliseconds(500));
  AddWorkers(2);
  Pass(milliseconds(900));
  EXPECT_THAT(assignments, IsEmpty());
  Pass(milliseconds(200));
  EXPECT_THAT(Assigned(), SizeIs(3));
}

TEST_F(ConductorTest, ACellOfAllWorkersWaitsForAllThatALauncherStarted) {
  launched = 3;
  AddWorkers(2);
  Conduct(LabOf("scale", {{.workers = 0}}));
  Pass(seconds(5));
  EXPECT_THAT(assignments, IsEmpty());
  AddWorkers(1);
  Pass(milliseconds(1100));
  EXPECT_THAT(Assigned(), SizeIs(3));
}

TEST_F(ConductorTest, ALaunchedWorkerThatNeverComesEndsTheLab) {
  launched = 3;
  AddWorkers(2);
  Conduct(LabOf("scale", {{.workers = 0}}));
  Pass(seconds(10));
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->exit_code, 3);
  EXPECT_EQ(VerdictText(), "too few members after 10 s: compare needs 3 workers, 2 joined");
}

TEST_F(ConductorTest, CalibratesOncePerKindOfWorkAndKeepsTheScaleForAllRepeats) {
  AddWorkers(2);
  AddServers(2);
  Conduct(LabOf("scale",
                {{.workers = 2, .shaped = true},
                 {.workers = 2, .with_servers = true, .shaped = true},
                 {.workers = 1, .shaped = true},
                 {.workers = 1}},
                2));
  EXPECT_THAT(EventsOf(v1::RunEvent::kPlanned), IsEmpty());
  EXPECT_TRUE(assignments[workers[0]].calibrate());
  EXPECT_THAT(Assigned(), ElementsAre(workers[0], workers[1])) << "no servers";
  AllReady();
  AllDone();
  EXPECT_TRUE(assignments[servers[0]].calibrate()) << "another exchange: what it takes is its own";
  EXPECT_THAT(Assigned(), SizeIs(4));
  AllReady();
  AllDone();
  EXPECT_TRUE(assignments[workers[0]].calibrate());
  EXPECT_THAT(Assigned(), ElementsAre(workers[0]));
  EXPECT_THAT(EventsOf(v1::RunEvent::kEnded), IsEmpty()) << "a calibration is no cell";
  AllReady();
  AllDone();
  ASSERT_THAT(EventsOf(v1::RunEvent::kPlanned), SizeIs(1));
  // 2 x 10 ms of real / 1 ms of modelled compute = 20; the exchange asks for less, 2 x 2 ms / 1 ms.
  const v1::Planned planned = EventsOf(v1::RunEvent::kPlanned)[0].planned();
  EXPECT_THAT(planned.time_scale(), ElementsAre(20, 20, 20, 1));
  // Two repeats of: 3 cells of 10 steps x 10 ms x 20, a native one of 10 steps x 12 ms as measured;
  // 0.3 s a run.
  EXPECT_NEAR(planned.expected_seconds(), 2 * (3 * 2.0 + 0.12 + 4 * 0.3), 1e-9);
  RunToTheEnd();
  for (const v1::RunEvent& event : EventsOf(v1::RunEvent::kStarted)) {
    EXPECT_EQ(event.started().time_scale(), event.started().cell() == 3 ? 1.0 : 20.0);
  }
}

TEST_F(ConductorTest, AGivenTimeScaleNeedsNoCalibration) {
  AddWorkers(1);
  experiment::Lab lab = LabOf("scale", {{.workers = 1, .shaped = true}});
  lab.parts[0].cells[0].spec.fabric.time_scale = 500;
  Conduct(std::move(lab));
  EXPECT_FALSE(assignments[workers[0]].calibrate());
  EXPECT_EQ(assignments[workers[0]].time_scale(), 500);
  // 20 x (10 steps x 10 ms x 500 + 0.3 s)
  EXPECT_EQ(Nanos(assignments[workers[0]].timeout_ns()), seconds(1006));
}

TEST_F(ConductorTest, AForecastThatFailsIsTheLabsMistake) {
  AddWorkers(1);
  forecast = [](const experiment::Cell&) -> absl::StatusOr<CellForecast> {
    return Unimplemented("model gpt is not there yet");
  };
  Conduct(LabOf("scale", {{.workers = 1}}));
  EXPECT_EQ(end->exit_code, 2);
  EXPECT_EQ(VerdictText(), "scale cell 0: model gpt is not there yet");
}

TEST_F(ConductorTest, MessagesOfAnotherGenerationAreIgnored) {
  AddWorkers(1);
  Conduct(LabOf("scale", {{.workers = 1}}, 2));
  Ready(workers[0]);
  const v1::MemberMessage old = ResultOf(workers[0]);
  Say(workers[0], old);
  EXPECT_EQ(EventsOf(v1::RunEvent::kEnded).size(), 1U);
  Ready(workers[0]);
  Say(workers[0], old);  // again, in the second repeat
  EXPECT_EQ(EventsOf(v1::RunEvent::kEnded).size(), 1U);
  Result(workers[0]);
  EXPECT_EQ(end->exit_code, 0);
}

TEST_F(ConductorTest, RepeatedMessagesOfAMemberCountOnce) {
  AddWorkers(2);
  Conduct(LabOf("scale", {{.workers = 2}}));
  Ready(workers[0]);
  Ready(workers[0]);
  EXPECT_EQ(CountOf(v1::CoordinatorMessage::kGo, workers[0]), 0);
  Ready(workers[1]);
  Ready(workers[1]);
  EXPECT_EQ(CountOf(v1::CoordinatorMessage::kGo, workers[0]), 1);
  Result(workers[0]);
  Result(workers[0]);
  EXPECT_FALSE(end.has_value());
}

TEST_F(ConductorTest, BarriersReleaseTheGeneration) {
  AddWorkers(2);
  AddServers(2);
  Conduct(LabOf("scale", {{.workers = 2, .with_servers = true}}));
  AllReady();
  Arrive(workers[1], "trained");
  Arrive(servers[0], "trained");
  EXPECT_EQ(CountOf(v1::CoordinatorMessage::kRelease, workers[1]), 0);
  Arrive(workers[0], "trained");
  EXPECT_EQ(CountOf(v1::CoordinatorMessage::kRelease, workers[0]), 1);
  EXPECT_EQ(CountOf(v1::CoordinatorMessage::kRelease, workers[1]), 1);
  EXPECT_EQ(CountOf(v1::CoordinatorMessage::kRelease, servers[0]), 1);
  EXPECT_EQ(CountOf(v1::CoordinatorMessage::kRelease, servers[1]), 0);
}

TEST_F(ConductorTest, WhatWorkersBringToABarrierGoesToAll) {
  AddWorkers(2);
  Conduct(LabOf("scale", {{.workers = 2}}));
  Arrive(workers[1], "unique id", "of 1");  // also while members get ready
  Arrive(workers[0], "unique id", std::string("\0of 0", 5));
  for (const MemberId worker : workers) {
    ASSERT_EQ(CountOf(v1::CoordinatorMessage::kRelease, worker), 1);
  }
  const v1::BarrierRelease& release = sent.back().message.release();
  ASSERT_EQ(release.tokens_size(), 2);
  EXPECT_EQ(release.tokens(0), std::string("\0of 0", 5));
  EXPECT_EQ(release.tokens(1), "of 1");
}

TEST_F(ConductorTest, InjectionsGoToTheRunningCellAndWhatWasAppliedToTheClient) {
  AddWorkers(2);
  experiment::Lab lab = LabOf("straggler", {{.workers = 2, .shaped = true}});
  lab.parts[0].cells[0].spec.fabric.time_scale = 100;
  Conduct(std::move(lab));
  v1::InjectRequest request;
  request.set_text("{rank: 1, pause: 500ms}");
  Actions actions;
  EXPECT_EQ(conductor->Inject(request, actions).status().code(),
            absl::StatusCode::kFailedPrecondition)
      << "the cell is getting ready";
  AllReady();
  const absl::StatusOr<v1::InjectReply> reply = conductor->Inject(request, actions);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->applied(), "500 ms modelled = 50 s here");
  EXPECT_EQ(reply->ranks(), 2);
  Carry(std::move(actions));
  EXPECT_EQ(CountOf(v1::CoordinatorMessage::kInject, workers[0]), 1);
  EXPECT_EQ(sent.back().message.inject().text(), "{rank: 1, pause: 500ms}");

  v1::MemberMessage applied;
  applied.mutable_applied()->set_generation(latest_generation);
  applied.mutable_applied()->set_injection(reply->id());
  applied.mutable_applied()->set_step(4);
  Say(workers[1], applied);
  ASSERT_TRUE(events.back().has_injection());
  EXPECT_EQ(events.back().injection().rank(), 1);
  EXPECT_EQ(events.back().injection().applied().step(), 4);
}

TEST_F(ConductorTest, SaysWhereItIs) {
  AddWorkers(3);
  Conduct(LabOf("scale", {{.workers = 1}, {.workers = 3}}));
  AllReady();
  AllDone();
  v1::StatusReply status;
  status.add_members()->set_member(workers[2]);
  conductor->Describe(status);
  EXPECT_EQ(status.lab(), "compare");
  EXPECT_EQ(status.part(), "scale");
  EXPECT_EQ(status.cell(), 1);
  EXPECT_EQ(status.repeat(), 1);
  EXPECT_EQ(status.members(0).rank(), 2);
}

}  // namespace
}  // namespace ranklab::coordinator
