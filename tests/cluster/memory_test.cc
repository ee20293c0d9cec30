// cluster.memory_cap: a refusal at a given size, and the verdict that tells its causes apart. 4810
// parameters; a sample is 260 bytes of data and 808 of activations (worker/memory_prediction.h).
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cluster/program.h"

namespace ranklab::cluster_test {
namespace {

using testing::HasSubstr;

constexpr Seconds kLimit(150);  // takes 2 s on an idle machine

// What the run says last. 100 samples on three workers: 34, 33 and 33.
std::string VerdictWith(const std::string& cap, const std::string& optimizer) {
  const TemporaryFolder folder;
  const std::string lab = folder.Write("lab.yaml", R"(name: memory
model:   {kind: mlp, layers: [64, 64, 10]}
data:    {kind: digits}
train:   {steps: 5, global_batch: 100, optimizer: )" + optimizer +
                                                       R"(}
cluster: {workers: 3, device: cpu, memory_cap: )" + cap +
                                                       "}\n");
  const Finished run = RunToEnd({"run", lab, "--out", folder.path() + "/out"}, kLimit);
  EXPECT_EQ(run.exit_code, 1) << run.out << run.err;
  return run.out + run.err;
}

TEST(MemoryCap, RefusesAtLoad) {
  EXPECT_THAT(
      VerdictWith("30KB", "sgd"),
      HasSubstr("cell 0, phase load, before any step: out of memory on cpu: gradients asked "
                "for 19248 bytes; in use: weights 19240; cap 30000; on all ranks alike"));
}

// States 38,488 bytes; 35,244 more for 33 samples, 36,312 for 34.
TEST(MemoryCap, RefusesTheLongestBatchOnTheRankThatHasIt) {
  const std::string verdict = VerdictWith("74KB", "sgd");
  EXPECT_THAT(verdict, HasSubstr("worker 0 of "));
  EXPECT_THAT(verdict, HasSubstr("cell 0, step 1, phase forward, the longest batch so far: out of "
                                 "memory on cpu: activations asked for 8704 bytes; in use: weights "
                                 "19240, gradients 19248, "));
  EXPECT_THAT(verdict, HasSubstr("; cap 74000; on this rank only"));
}

TEST(MemoryCap, RefusesTheFirstOptimizerStep) {
  EXPECT_THAT(
      VerdictWith("92KB", "momentum"),
      HasSubstr("cell 0, step 1, phase optimizer, the first optimizer step: out of memory on "
                "cpu: optimizer asked for 19240 bytes; in use: weights 19240, gradients "
                "19248, activations 27472, data 8840; cap 92000; on all ranks alike"));
}

TEST(MemoryCap, GrantsWhatFits) {
  const TemporaryFolder folder;
  const std::string lab = folder.Write("lab.yaml", R"(name: memory
model:   {kind: mlp, layers: [64, 64, 10]}
data:    {kind: digits}
train:   {steps: 5, global_batch: 100, optimizer: momentum}
cluster: {workers: 3, device: cpu, memory_cap: 94040B}
)");
  const Finished run = RunToEnd({"run", lab, "--out", folder.path() + "/out"}, kLimit);
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
}

}  // namespace
}  // namespace ranklab::cluster_test
