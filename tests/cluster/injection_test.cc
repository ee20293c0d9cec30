// Live injection into a shaped lab with modelled compute: what was asked acts, is logged with what
// was applied, and goes away with a reset.
#include <algorithm>
#include <csignal>
#include <cstdio>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cluster/program.h"
#include "tests/cluster/record.h"
#include "tests/cluster/services.h"

namespace ranklab::cluster_test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr Seconds kLimit(90);

// A modelled step of about 60 us, mostly fixed costs: 180 ms here, far above what a busy machine
// adds.
constexpr char kLab[] = R"(name: injected
seed: 3
model:    {kind: mlp, layers: [64, 32, 10]}
data:     {kind: digits}
train:    {steps: 100000, batch_per_worker: 16}
cluster:  {workers: 2, device: cpu}
compute:  {model: a100}
fabric:   {preset: nvlink4, time_scale: 3000}
exchange: {kind: collective, algorithm: ring}
parts:
  - name: shaped
)";

class Injection : public ::testing::Test {
 protected:
  void SetUp() override {
    std::vector<std::string> command = {
        "run", folder_.Write("lab.yaml", kLab), "--set", "train.warmup_steps=0", "--out", Out()};
    for (const std::string& setting : Settings()) {
      command.insert(command.end(), {"--set", setting});
    }
    run_ = std::make_unique<Program>(command);
    ASSERT_TRUE(WaitUntil([this] { return Ready(); }, kLimit)) << run_->out() << run_->err();
  }

  virtual std::vector<std::string> Settings() const { return {}; }

  // The row `none` comes last, so the first cell is the one with two workers.
  bool Ready() {
    const ProcessSeen worker = run_->Find("worker", 0);
    coordinator_ = worker.ValueOf("--coordinator");
    return worker.pid != 0 && BothPast(5);
  }
  bool BothPast(int step) const { return WorkersPast(step, "shaped", coordinator_) == 2; }

  // Until both ranks have made `count` more steps.
  void Steps(int count) const {
    int last = 0;
    const nlohmann::json status = StatusOf(coordinator_);
    ASSERT_FALSE(status.is_discarded());
    for (const auto& member : status["members"]) {
      last = std::max(last, std::stoi(member["step"].get<std::string>()));
    }
    ASSERT_TRUE(WaitUntil([&] { return BothPast(last + count); }, kLimit));
  }

  Finished Inject(std::vector<std::string> flags) const {
    flags.insert(flags.begin(), {"inject", "--coordinator", coordinator_});
    return RunToEnd(flags, kLimit);
  }
  void Accept(const std::vector<std::string>& flags) const {
    const Finished inject = Inject(flags);
    EXPECT_EQ(inject.exit_code, 0) << inject.err;
    EXPECT_THAT(inject.out, ContainsRegex("^injection [0-9]+: "));
  }

  std::string Out() const { return folder_.path() + "/out"; }

  TemporaryFolder folder_;
  std::unique_ptr<Program> run_;
  std::string coordinator_;
};

// The median of a column of a rank's steps [from, until), modelled seconds.
double Median(const Record& record, int rank, const char* column, int from, int until) {
  std::vector<double> times;
  for (const StepLine& line : record.StepsOf(rank)) {
    const int step = std::stoi(line.at("step"));
    if (step >= from && step < until) {
      times.push_back(std::stod(line.at(column)));
    }
  }
  EXPECT_FALSE(times.empty()) << "rank " << rank << ", steps " << from << " to " << until;
  std::sort(times.begin(), times.end());
  return times.empty() ? 0 : times[times.size() / 2];
}

double MedianBackward(const Record& record, int rank, int from, int until) {
  return Median(record, rank, "backward_s", from, until);
}

const nlohmann::json* FindInjection(const Record& record, const std::string& member,
                                    const std::string& asked) {
  for (const nlohmann::json& line : record.injections) {
    if (line["member"] == member &&
        line["asked"].get<std::string>().find(asked) != std::string::npos) {
      return &line;
    }
  }
  return nullptr;
}

TEST_F(Injection, ASlowPhaseGrowsUntilTheReset) {
  Accept({"--rank", "1", "--slow", "backward=3x"});
  ASSERT_NO_FATAL_FAILURE(Steps(12));
  Accept({"--reset"});
  ASSERT_NO_FATAL_FAILURE(Steps(12));
  run_->Signal(SIGINT);
  EXPECT_EQ(run_->Wait(kLimit).exit_code, 3);
  const Record record = ReadOneRecord(Out());

  const nlohmann::json* slow = FindInjection(record, "worker 1", "backward");
  const nlohmann::json* reset = FindInjection(record, "worker 1", "reset");
  ASSERT_NE(slow, nullptr) << nlohmann::json(record.injections).dump(1);
  ASSERT_NE(reset, nullptr) << nlohmann::json(record.injections).dump(1);
  EXPECT_THAT((*slow)["asked"].get<std::string>(), HasSubstr("factor: 3"));
  EXPECT_NE((*slow)["applied"], "");
  const int from = (*slow)["step"];
  const int until = (*reset)["step"];
  ASSERT_GT(until, from + 4);
  const double before = MedianBackward(record, 1, 2, from);
  const double during = MedianBackward(record, 1, from + 1, until - 1);
  const double after = MedianBackward(record, 1, until + 2, 1 << 30);
  std::printf("backward, modelled us: %.1f before, %.1f slowed, %.1f after\n", before * 1e6,
              during * 1e6, after * 1e6);
  EXPECT_GT(during, 1.7 * before);  // asked: 3; a busy machine adds to both
  EXPECT_LT(after, during / 1.7);
  EXPECT_LT(MedianBackward(record, 0, from + 1, until - 1), during / 1.7) << "rank 0 was not asked";
}

// Input, forward and optimizer by a time, and a link: 400 us are more than a step, so that the
// queue in front of it runs dry. A ring of two crosses the link twice.
TEST_F(Injection, PhasesSlowedByATimeAndALinkActUntilTheReset) {
  struct Asked {
    std::vector<std::string> flags;
    std::string text;
    const char* column;
    double least;  // that the column grows by, of what was asked
  };
  const std::vector<Asked> all = {
      {{"--rank", "1", "--slow", "input=400us"}, "input", "input_s", 100e-6},
      {{"--rank", "1", "--slow", "forward=60us"}, "forward", "forward_s", 40e-6},
      {{"--rank", "1", "--slow", "optimizer=60us"}, "optimizer", "optimizer_s", 40e-6},
      {{"--link", "0-1", "--latency", "50us"}, "0-1", "exposed_s", 60e-6}};
  for (const Asked& asked : all) {
    Accept(asked.flags);
  }
  ASSERT_NO_FATAL_FAILURE(Steps(8));
  Accept({"--reset"});
  ASSERT_NO_FATAL_FAILURE(Steps(10));
  run_->Signal(SIGINT);
  EXPECT_EQ(run_->Wait(kLimit).exit_code, 3);
  const Record record = ReadOneRecord(Out());
  const nlohmann::json* reset = FindInjection(record, "worker 1", "reset");
  ASSERT_NE(reset, nullptr) << nlohmann::json(record.injections).dump(1);
  const int until = (*reset)["step"];
  for (const Asked& asked : all) {
    SCOPED_TRACE(asked.text);
    const nlohmann::json* logged = FindInjection(record, "worker 1", asked.text);
    ASSERT_NE(logged, nullptr) << nlohmann::json(record.injections).dump(1);
    EXPECT_NE((*logged)["applied"], "");
    const int from = (*logged)["step"];
    ASSERT_GT(until, from + 5);
    // The loader has two batches ready when it is slowed, and as many to catch up afterwards.
    const double before = Median(record, 1, asked.column, 2, from);
    const double during = Median(record, 1, asked.column, from + 3, until);
    const double after = Median(record, 1, asked.column, until + 4, 1 << 30);
    std::printf("%s, modelled us: %.1f before, %.1f slowed, %.1f after\n", asked.column,
                before * 1e6, during * 1e6, after * 1e6);
    EXPECT_GT(during, before + asked.least);
    EXPECT_LT(after, during - asked.least / 2);
  }
}

TEST_F(Injection, PausesLinksAndKillsAreLoggedAndAct) {
  Accept({"--rank", "0", "--pause", "400us"});
  Accept({"--link", "0-1", "--latency", "20us"});
  ASSERT_NO_FATAL_FAILURE(Steps(6));
  Accept({"--rank", "1", "--kill"});
  EXPECT_EQ(run_->Wait(kLimit).exit_code, 3);
  EXPECT_THAT(run_->err(), ContainsRegex("worker 1 was lost in step [0-9]+ of shaped"));
  const Record record = ReadOneRecord(Out());
  const nlohmann::json* pause = FindInjection(record, "worker 0", "pause");
  ASSERT_NE(pause, nullptr) << nlohmann::json(record.injections).dump(1);
  EXPECT_NE((*pause)["applied"], "");
  EXPECT_NE(FindInjection(record, "worker 0", "0-1"), nullptr);
  EXPECT_NE(FindInjection(record, "worker 1", "0-1"), nullptr);
  EXPECT_NE(FindInjection(record, "worker 1", "kill"), nullptr)
      << nlohmann::json(record.injections).dump(1);
  double longest = 0;
  for (const StepLine& line : record.StepsOf(0)) {
    longest = std::max(longest, std::stod(line.at("step_s")));
  }
  EXPECT_GE(longest, 400e-6) << "no step was paused";
}

class ServerInjection : public Injection {
  std::vector<std::string> Settings() const override {
    return {"exchange={kind: ps}", "cluster.servers=1"};
  }
};

// 40 us more each way: what worker 1 waits for its server is never less than both.
TEST_F(ServerInjection, ALinkToAServerSlowsBothWaysUntilTheReset) {
  Accept({"--link", "1-ps0", "--latency", "40us"});
  ASSERT_NO_FATAL_FAILURE(Steps(8));
  Accept({"--reset"});
  ASSERT_NO_FATAL_FAILURE(Steps(4));
  const Finished nobody = Inject({"--link", "1-ps4", "--latency", "40us"});
  EXPECT_EQ(nobody.exit_code, 2);
  EXPECT_THAT(nobody.err, HasSubstr("no ps4"));
  run_->Signal(SIGINT);
  EXPECT_EQ(run_->Wait(kLimit).exit_code, 3);
  const Record record = ReadOneRecord(Out());

  const nlohmann::json* link = FindInjection(record, "worker 1", "1-ps0");
  const nlohmann::json* reset = FindInjection(record, "worker 1", "reset");
  ASSERT_NE(link, nullptr) << nlohmann::json(record.injections).dump(1);
  ASSERT_NE(reset, nullptr) << nlohmann::json(record.injections).dump(1);
  EXPECT_EQ((*link)["applied"], "in force on the way to server 0 and from server 0");
  EXPECT_EQ(FindInjection(record, "worker 0", "1-ps0"), nullptr) << "worker 0 was not asked";
  const int from = (*link)["step"];
  const int until = (*reset)["step"];
  ASSERT_GT(until, from + 2);
  const double during = Median(record, 1, "exposed_s", from, until);
  std::printf(
      "waited for the server, modelled us: %.1f before, %.1f with 2 x 40 more, %.1f after\n",
      Median(record, 1, "exposed_s", 2, from) * 1e6, during * 1e6,
      Median(record, 1, "exposed_s", until, 1 << 30) * 1e6);
  EXPECT_GE(during, 80e-6);
}

TEST_F(Injection, ALongWallTimeIsRefusedUnlessAskedFor) {
  const Finished refused = Inject({"--rank", "1", "--pause", "100ms"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("100 ms modelled = 300 s here"), HasSubstr("--wall")));
  const Finished nobody = Inject({"--rank", "7", "--kill"});
  EXPECT_EQ(nobody.exit_code, 2);
  EXPECT_THAT(nobody.err, HasSubstr("no rank 7"));
  const Finished word = Inject({"--rank", "1", "--slow", "backwrd=2x"});
  EXPECT_EQ(word.exit_code, 2);
  EXPECT_THAT(word.err, HasSubstr("backward"));
  EXPECT_TRUE(BothPast(5)) << "the lab goes on";
}

}  // namespace
}  // namespace ranklab::cluster_test
