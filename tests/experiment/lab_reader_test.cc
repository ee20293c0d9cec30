#include "experiment/lab_reader.h"

#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/status.h"

namespace ranklab::experiment {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::SizeIs;

// Lines count from 1: name 1, model 2, data 3, train 4, cluster 5, exchange 6, fabric 7.
constexpr std::string_view kSmall = R"(name: small
model:    {kind: mlp, layers: [64, 32, 10]}
data:     {kind: digits}
train:    {steps: 10, global_batch: 64}
cluster:  {workers: 2, servers: 1}
exchange: {kind: collective, algorithm: ring}
fabric:   {preset: pcie4_x16}
)";

Lab Read(std::string_view text, const std::vector<std::string>& overrides = {}) {
  absl::StatusOr<Lab> lab = ReadLab(text, "x.yaml", overrides);
  EXPECT_TRUE(lab.ok()) << MessageOf(lab.status());
  return lab.ok() ? *std::move(lab) : Lab{};
}

std::string Refusal(std::string_view text, const std::vector<std::string>& overrides = {}) {
  const absl::StatusOr<Lab> lab = ReadLab(text, "x.yaml", overrides);
  EXPECT_FALSE(lab.ok());
  EXPECT_EQ(lab.status().code(), absl::StatusCode::kInvalidArgument);
  return MessageOf(lab.status());
}

// kSmall with one of its lines replaced.
std::string With(std::string_view line_of, std::string_view line) {
  std::string text(kSmall);
  const std::size_t begin = text.find(std::string(line_of) + ":");
  EXPECT_NE(begin, std::string::npos);
  return text.replace(begin, text.find('\n', begin) - begin, line);
}
std::string Plus(std::string_view more) { return std::string(kSmall) + std::string(more); }

TEST(LabReader, ReadsEverySection) {
  const Lab lab = Read(R"(
name: all
question: What does it read?
budget: 4min
seed: 9
model: {kind: mlp, layers: [20, 30, 5]}
data: {kind: synthetic, samples: 100, inputs: 20, classes: 5, split_seed: 3}
train: {steps: 7, warmup_steps: 1, batch_per_worker: 16, accumulate: 2, optimizer: momentum,
        momentum: 0.8, learning_rate: 0.25, precision: fp32}
cluster: {workers: 3, servers: 2, device: cpu, on_loss: stop, suspect_after: 2s}
compute: {model: a100, threads: 2, op_overhead: 4us}
exchange: {kind: ps, staleness: 2, order: arrival, transport: tcp, bucket: 4MiB,
           first_bucket: 64KiB, overlap: false, timeout: 20s}
fabric: {preset: nvlink4, time_scale: 500}
repeats: 3
scenario: [{at_step: 3, until_step: 5, rank: 2, slow: {phase: forward, factor: 2.5}}]
expect: [accuracy > 0.5]
)");
  EXPECT_EQ(lab.name, "all");
  EXPECT_EQ(lab.question, "What does it read?");
  EXPECT_EQ(lab.budget_seconds, 240);
  ASSERT_THAT(lab.parts, SizeIs(1));
  EXPECT_EQ(lab.parts[0].name, "all");
  EXPECT_EQ(lab.parts[0].repeats, 3);
  ASSERT_THAT(lab.parts[0].expect, SizeIs(1));
  EXPECT_EQ(lab.parts[0].expect[0].text, "accuracy > 0.5");
  const LabSpec& spec = lab.parts[0].cells.at(0).spec;
  EXPECT_EQ(spec.seed, 9U);
  EXPECT_THAT(std::get<MlpSpec>(spec.model).layers, ElementsAre(20, 30, 5));
  EXPECT_EQ(spec.data.kind, "synthetic");
  EXPECT_EQ(spec.data.samples, 100);
  EXPECT_EQ(spec.data.split_seed, 3U);
  EXPECT_EQ(spec.train.steps, 7);
  EXPECT_EQ(spec.train.warmup_steps, 1);
  EXPECT_EQ(spec.train.batch_per_worker, 16);
  EXPECT_EQ(spec.train.accumulate, 2);
  EXPECT_EQ(spec.train.optimizer, "momentum");
  EXPECT_EQ(spec.train.momentum, 0.8);
  EXPECT_EQ(spec.train.learning_rate, 0.25);
  EXPECT_EQ(spec.cluster.workers, 3);
  EXPECT_EQ(spec.cluster.servers, 2);
  EXPECT_EQ(spec.cluster.device, "cpu");
  EXPECT_EQ(spec.cluster.suspect_after, std::chrono::seconds(2));
  EXPECT_EQ(spec.compute.model, "a100");
  EXPECT_EQ(spec.compute.threads, 2);
  EXPECT_EQ(spec.compute.op_overhead, std::chrono::microseconds(4));
  EXPECT_EQ(std::get<ParameterServerSpec>(spec.exchange.kind).staleness_bound, 2);
  EXPECT_EQ(spec.exchange.transport, "tcp");
  EXPECT_EQ(spec.exchange.bucket, 4 << 20);
  EXPECT_EQ(spec.exchange.first_bucket, 64 << 10);
  EXPECT_FALSE(spec.exchange.overlap);
  EXPECT_EQ(spec.exchange.timeout, std::chrono::seconds(20));
  EXPECT_EQ(spec.fabric.preset, "nvlink4");
  EXPECT_EQ(spec.fabric.time_scale, 500);
  ASSERT_THAT(spec.scenario.injections, SizeIs(1));
  const auto& slow = std::get<SlowPhase>(spec.scenario.injections[0].effect);
  EXPECT_EQ(slow.rank, 2);
  EXPECT_EQ(slow.phase, Phase::kForward);
  EXPECT_EQ(slow.factor, 2.5);
  EXPECT_EQ(spec.scenario.injections[0].at_step, 3);
  EXPECT_EQ(spec.scenario.injections[0].until_step, 5);
}

TEST(LabReader, SaysTheNearestKeyAndTheLine) {
  EXPECT_EQ(Refusal(With("exchange", "exchange: {kind: collective, algoritm: ring}")),
            "x.yaml:6: exchange.algoritm: unknown key; did you mean \"algorithm\"?");
  EXPECT_EQ(Refusal(Plus("fabrik: {preset: native}\n")),
            "x.yaml:8: fabrik: unknown key; did you mean \"fabric\"?");
}

TEST(LabReader, SaysWhatWouldBeRight) {
  EXPECT_EQ(Refusal(With("exchange", "exchange: {algorithm: rign}")),
            "x.yaml:6: exchange.algorithm is \"rign\"; one of auto, ring");
  EXPECT_EQ(Refusal(With("exchange", "exchange: {bucket: 25}")),
            "x.yaml:6: exchange.bucket is \"25\"; a size with its unit, such as 25MiB, 64KiB or "
            "1MB");
  EXPECT_EQ(Refusal(With("exchange", "exchange: {timeout: 5MiB}")),
            "x.yaml:6: exchange.timeout is \"5MiB\"; a duration with its unit, such as 500ms, 5us "
            "or 2s");
  EXPECT_EQ(Refusal(With("train", "train: {steps: many, global_batch: 8}")),
            "x.yaml:4: train.steps is \"many\"; a whole number from 1 to 1073741824");
  EXPECT_EQ(Refusal(With("cluster", "cluster: {workers: -1}")),
            "x.yaml:5: cluster.workers is \"-1\"; a whole number from 0 to 1048576");
  EXPECT_EQ(Refusal(With("cluster", "cluster: 4")),
            "x.yaml:5: cluster is \"4\"; a map of its keys");
  EXPECT_EQ(Refusal(With("cluster", "cluster: {on_loss: continue}")),
            "x.yaml:5: cluster.on_loss is \"continue\"; not supported yet, only stop");
  EXPECT_EQ(Refusal(With("train", "train: {global_batch: 8}")),
            "x.yaml:4: train.steps is missing; a whole number, at least 1");
}

}  // namespace
}  // namespace ranklab::experiment
