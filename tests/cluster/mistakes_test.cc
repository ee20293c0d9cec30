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

// Found by the workers, who read it: the verdict names the file and what is wrong in it.
TEST(Mistakes, ATruncatedDataFileEndsTheRunWithItsName) {
  const TemporaryFolder folder;
  const std::string two_images{"\0\0\x8\x3\0\0\0\x2\0\0\0\x1\0\0\0\x2\x10\x20\x30\x40", 20};
  const std::string two_labels{"\0\0\x8\x1\0\0\0\x2\x0\x1", 10};
  folder.Write("images", two_images.substr(0, 18));
  folder.Write("test_images", two_images);
  folder.Write("labels", two_labels);
  folder.Write("test_labels", two_labels);
  const LabText text{.model = "{kind: mlp, layers: [2, 2]}",
                     .data =
                         "{kind: idx, images: images, labels: labels, test_images: "
                         "test_images, test_labels: test_labels}",
                     .train = "{steps: 3, global_batch: 2}"};
  const std::string lab = folder.Write("lab.yaml", text.Text());
  const auto run = [&] { return RunToEnd({"run", lab, "--out", folder.path() + "/out"}, kLimit); };
  const Finished truncated = run();
  EXPECT_EQ(truncated.exit_code, 2) << truncated.out << truncated.err;
  EXPECT_THAT(truncated.err,
              AllOf(HasSubstr(folder.path() + "/images"), HasSubstr("the header promises 4")));
  folder.Write("images", two_images);
  const Finished whole = run();
  EXPECT_EQ(whole.exit_code, 0) << whole.out << whole.err;
}

TEST(Mistakes, WhatThisBuildCannotDoIsRefusedByName) {
  ExpectRefused({.exchange = "{kind: nccl}"},
                AllOf(StartsWith("LAB:6: exchange.kind is \"nccl\""), HasSubstr("collective")));
  ExpectRefused({.train = "{steps: 10, global_batch: 32, precision: fp8}"},
                AllOf(StartsWith("LAB:4: train.precision is \"fp8\"; "), HasSubstr("fp32")));
  ExpectRefused({.cluster = "{workers: 2, device: cuda}"},
                AllOf(StartsWith("LAB:5: cluster.device is \"cuda\""), HasSubstr("cpu")));
  ExpectRefused({.cluster = "{workers: 2, on_loss: continue}"},
                AllOf(StartsWith("LAB:5: cluster.on_loss is \"continue\"; "), HasSubstr("stop")));
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

TEST(Mistakes, ACommandLineIsCheckedToo) {
  EXPECT_EQ(RunToEnd({"run"}, kLimit).exit_code, 2);
  EXPECT_EQ(RunToEnd({"rn"}, kLimit).exit_code, 2);
  EXPECT_EQ(RunToEnd({"run", "labs/compare.yaml", "--wrkers", "3"}, kLimit).exit_code, 2);
  EXPECT_EQ(RunToEnd({"--help"}, kLimit).exit_code, 0);
}

}  // namespace
}  // namespace ranklab::cluster_test
