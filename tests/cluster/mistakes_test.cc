// A mistake in a lab is told in one line with its place and what would be right, with exit code 2,
// before anything is started and without a record.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cluster/program.h"
#include "tests/cluster/record.h"

namespace ranklab::cluster_test {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Matcher;
using ::testing::StartsWith;

constexpr Seconds kLimit(60);

// Six lines; every test changes or adds one.
struct LabText {
  std::string model = "{kind: mlp, layers: [64, 16, 10]}";
  std::string data = "{kind: digits}";
  std::string train = "{steps: 10, global_batch: 32}";
  std::string cluster = "{workers: 2, device: cpu}";
  std::string exchange = "{kind: collective}";
  std::string more = "";

  std::string Text() const {
    return "name: mistaken\nmodel: " + model + "\ndata: " + data + "\ntrain: " + train +
           "\ncluster: " + cluster + "\nexchange: " + exchange + "\n" + more;
  }
};

// `message`: of the line without "ranklab: ", with LAB for the lab file's path.
void ExpectRefused(const LabText& text, const Matcher<std::string>& message,
                   const std::vector<std::string>& flags = {}) {
  const TemporaryFolder folder;
  const std::string lab = folder.Write("lab.yaml", text.Text());
  std::vector<std::string> arguments = {"run", lab, "--out", folder.path() + "/out"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  const Finished run = RunToEnd(arguments, kLimit);
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  std::string said = run.err;
  for (std::size_t at = said.find(lab); at != std::string::npos; at = said.find(lab)) {
    said.replace(at, lab.size(), "LAB");
  }
  EXPECT_THAT(said, StartsWith("ranklab: "));
  EXPECT_THAT(said.substr(std::min<std::size_t>(9, said.size())), message);
  EXPECT_TRUE(RecordsIn(folder.path() + "/out").empty()) << "a record of nothing";
}

TEST(Mistakes, AnUnknownKeyHasItsLineAndTheNearestKnownOne) {
  ExpectRefused({.more = "exchnge: {kind: ps}\n"},
                "LAB:7: exchnge: unknown key; did you mean \"exchange\"?\n");
  ExpectRefused({}, "--set train.stepz=3: unknown key; did you mean \"steps\"?\n",
                {"--set", "train.stepz=3"});
}

TEST(Mistakes, AWrongUnitIsToldWhatUnitsThereAre) {
  ExpectRefused({.exchange = "{kind: ps, bucket: 25MX}"},
                AllOf(StartsWith("LAB:6: exchange.bucket is \"25MX\"; "), HasSubstr("25MiB")));
}

TEST(Mistakes, AnImpossibleCombinationIsToldWhy) {
  ExpectRefused({.exchange = "{kind: none}"},
                "LAB:5: cluster.workers is 2; exchange.kind none is one worker alone\n");
}

TEST(Mistakes, AMissingLabIsNamed) {
  const TemporaryFolder folder;
  const std::string lab = folder.path() + "/no_such_lab.yaml";
  const Finished run = RunToEnd({"run", lab, "--out", folder.path() + "/out"}, kLimit);
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, StartsWith("ranklab: " + lab + ": No such file"));
  EXPECT_TRUE(RecordsIn(folder.path() + "/out").empty());
}

TEST(Mistakes, AMissingDataFileIsNamedBeforeAnythingStarts) {
  ExpectRefused({.data = "{kind: idx, images: a, labels: b, test_images: c, test_labels: d}"},
                AllOf(StartsWith("LAB:3: data.images is \"a\"; "), HasSubstr("No such file")));
}

TEST(Mistakes, ADataFileOfTheWrongKindOrSizeIsNamedBeforeAnythingStarts) {
  const TemporaryFolder folder;
  const std::string two_images{"\0\0\x8\x3\0\0\0\x2\0\0\0\x1\0\0\0\x2\x10\x20\x30\x40", 20};
  const std::string two_labels{"\0\0\x8\x1\0\0\0\x2\x0\x1", 10};
  folder.Write("images", two_images);
  folder.Write("test_images", two_images);
  folder.Write("labels", two_labels);
  folder.Write("test_labels", two_labels);
  const LabText text{.model = "{kind: mlp, layers: [2, 2]}",
                     .data =
                         "{kind: idx, images: images, labels: labels, test_images: "
                         "test_images, test_labels: test_labels}",
                     .train = "{steps: 3, global_batch: 2}"};
  const std::string lab = folder.Write("lab.yaml", text.Text());
  const std::string out = folder.path() + "/out";
  const auto run = [&] { return RunToEnd({"run", lab, "--out", out}, kLimit); };
  const Finished whole = run();
  EXPECT_EQ(whole.exit_code, 0) << whole.out << whole.err;
  for (const auto& [content, mistake] :
       {std::pair(two_images.substr(0, 18), "the header promises 4"),
        std::pair(two_labels, "0x00000803 is right for images")}) {
    folder.Write("images", content);
    const Finished refused = run();
    EXPECT_EQ(refused.exit_code, 2) << refused.out << refused.err;
    EXPECT_THAT(refused.err,
                AllOf(StartsWith("ranklab: " + lab + ":3: data.images is \"images\"; "),
                      HasSubstr(mistake)));
    EXPECT_EQ(RecordsIn(out).size(), 1U) << "the record of the whole files alone";
  }
}

TEST(Mistakes, WhatThisBuildCannotDoIsRefusedByName) {
  ExpectRefused({.exchange = "{kind: nccl}"},
                AllOf(StartsWith("LAB:6: exchange.kind is \"nccl\""), HasSubstr("collective")));
  ExpectRefused({.train = "{steps: 10, global_batch: 32, precision: fp8}"},
                AllOf(StartsWith("LAB:4: train.precision is \"fp8\"; "), HasSubstr("fp32")));
  ExpectRefused({.cluster = "{workers: 2, device: cuda}"},
                AllOf(StartsWith("LAB:5: cluster.device is \"cuda\""), HasSubstr("cpu")));
  ExpectRefused({.cluster = "{workers: 2, on_loss: continue}"},
                StartsWith("LAB:5: cluster.on_loss continue needs exchange.kind ps: "));
}

TEST(Mistakes, WhatASweepChoosesIsRefusedToo) {
  ExpectRefused({.more = "sweep:\n  exchange:\n    - {kind: ps}\n    - {kind: nccl}\n"},
                AllOf(StartsWith("LAB:10: exchange.kind is \"nccl\""), HasSubstr("collective")));
  ExpectRefused({}, StartsWith("--set cluster.device=cuda: cluster.device is \"cuda\""),
                {"--set", "cluster.device=cuda"});
}

TEST(Mistakes, AllWorkersOfThisMachineNeedANumber) {
  ExpectRefused({.train = "{steps: 10, batch_per_worker: 16}", .cluster = "{workers: all}"},
                AllOf(StartsWith("LAB:5: cluster.workers is all; "), EndsWith("--workers N\n")));
}

TEST(Mistakes, MoreProcessesThanOneMachineRunsAreRefused) {
  ExpectRefused({.train = "{steps: 10, batch_per_worker: 16}", .cluster = "{workers: 300}"},
                StartsWith("LAB:5: cluster.workers is 300; at most 256 on one machine"));
  ExpectRefused({.cluster = "{workers: 2, servers: 257}", .exchange = "{kind: ps}"},
                StartsWith("LAB:5: cluster.servers is 257; at most 256 on one machine"));
}

TEST(Mistakes, AFolderThatCannotBeMadeIsAMistakeInTheInput) {
  const TemporaryFolder folder;
  const std::string lab = folder.Write("lab.yaml", LabText().Text());
  const std::string file = folder.Write("file", "");
  const Finished run = RunToEnd({"run", lab, "--out", file + "/out"}, kLimit);
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr(file + "/out"));
}

TEST(Mistakes, AReportOfAFolderThatNoRunLeftIsRefused) {
  const TemporaryFolder folder;
  const Finished report = RunToEnd({"report", folder.path()}, kLimit);
  EXPECT_EQ(report.exit_code, 2);
  EXPECT_EQ(report.out, "");
  EXPECT_THAT(report.err, AllOf(HasSubstr(folder.path() + "/summary.json cannot be read"),
                                HasSubstr("name a folder that `ranklab run` left")));
}

TEST(Mistakes, AFlagThatNeedsAnotherNamesIt) {
  const Finished latency = RunToEnd({"inject", "--latency", "5ms"}, kLimit);
  EXPECT_EQ(latency.exit_code, 2);
  EXPECT_THAT(latency.err, StartsWith("ranklab: --latency needs --link"));
  const Finished every = RunToEnd({"inject", "--rank", "1", "--every-steps", "3"}, kLimit);
  EXPECT_EQ(every.exit_code, 2);
  EXPECT_THAT(every.err, StartsWith("ranklab: --every-steps needs --pause"));
}

TEST(Mistakes, ACommandLineIsCheckedToo) {
  EXPECT_EQ(RunToEnd({"run"}, kLimit).exit_code, 2);
  const Finished unknown = RunToEnd({"rn"}, kLimit);
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_EQ(unknown.err, "ranklab: \"rn\" is no command; did you mean \"run\"?\n");
  EXPECT_THAT(RunToEnd({"frobnicate"}, kLimit).err,
              StartsWith("ranklab: \"frobnicate\" is no command; one of run, simulate"));
  EXPECT_EQ(RunToEnd({"run", "labs/compare.yaml", "--wrkers", "3"}, kLimit).exit_code, 2);
  EXPECT_EQ(RunToEnd({"--help"}, kLimit).exit_code, 0);
}

}  // namespace
}  // namespace ranklab::cluster_test
