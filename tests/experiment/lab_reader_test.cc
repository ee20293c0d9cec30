#include "experiment/lab_reader.h"

#include <chrono>
#include <cstdio>
#include <fstream>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/experiment/lab_support.h"

namespace ranklab::experiment {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

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

TEST(LabReader, FillsInWhatTheFileLeavesOut) {
  const LabSpec spec = Read(kSmall).parts[0].cells[0].spec;
  EXPECT_EQ(spec.seed, 1U);
  EXPECT_EQ(spec.train.warmup_steps, 2);
  EXPECT_EQ(spec.train.optimizer, "sgd");
  EXPECT_EQ(spec.compute.model, "native");
  EXPECT_EQ(spec.exchange.bucket, 25 << 20);
  EXPECT_EQ(spec.exchange.first_bucket, 1 << 20);
  EXPECT_EQ(spec.fabric.time_scale, 0) << "auto";
  EXPECT_EQ(spec.cluster.suspect_after, std::chrono::seconds(5));
}

TEST(LabReader, KnowsEveryExchange) {
  const auto kind = [](std::string_view line) {
    return Read(With("exchange", line, With("fabric", "fabric: {preset: native}")))
        .parts[0]
        .cells[0]
        .spec;
  };
  EXPECT_EQ(kind("exchange: {kind: ps}").ExchangeName(), "ps");
  EXPECT_EQ(kind("exchange: {kind: ps, staleness: 3}").ExchangeName(), "ps staleness 3");
  EXPECT_EQ(kind("exchange: {kind: ps, staleness: none}").ExchangeName(), "ps async");
  EXPECT_EQ(kind("exchange: {kind: collective, algorithm: auto}").ExchangeName(), "auto");
  EXPECT_EQ(kind("exchange: {kind: nccl}").ExchangeName(), "nccl");
  EXPECT_EQ(kind("exchange: {}").ExchangeName(), "ring");
  EXPECT_EQ(kind("exchange: {kind: ps}").Transport(), "grpc");
  EXPECT_EQ(kind("exchange: {kind: ps, transport: tcp}").Transport(), "tcp");
  EXPECT_EQ(kind("exchange: {}").Transport(), "tcp");
  const LabSpec rank_order = kind("exchange: {kind: ps, order: rank}");
  EXPECT_EQ(std::get<ParameterServerSpec>(rank_order.exchange.kind).order, ReductionOrder::kRank);
}

TEST(LabReader, NativeOnNativeHasNoTimeScale) {
  EXPECT_EQ(
      Read(With("fabric", "fabric: {time_scale: 100}")).parts[0].cells[0].spec.fabric.time_scale,
      1);
}

TEST(LabReader, AGlobalBatchIsSharedToWithinOneSample) {
  const LabSpec spec =
      Read(kSmall, {"cluster.workers=5", "train.global_batch=13"}).parts[0].cells[0].spec;
  EXPECT_EQ(spec.GlobalBatch(), 13);
  std::vector<int> shares;
  for (Rank rank = 0; rank < 5; ++rank) {
    shares.push_back(spec.BatchOf(rank));
  }
  EXPECT_THAT(shares, ElementsAre(3, 3, 3, 2, 2));
}

TEST(LabReader, TheHashIsOfTextAndOverrides) {
  const std::string plain = Read(kSmall).hash;
  EXPECT_EQ(plain.size(), 32U);
  EXPECT_EQ(plain, Read(kSmall).hash);
  EXPECT_NE(plain, Read(Plus("# a comment\n")).hash);
  EXPECT_NE(plain, Read(kSmall, {"train.steps=10"}).hash);
  EXPECT_NE(Read(kSmall, {"train.steps=10", "seed=1"}).hash,
            Read(kSmall, {"seed=1", "train.steps=10"}).hash);
}

TEST(LabReader, AMissingFileIsNamed) {
  const auto lab = ReadLabFile("no/such/lab.yaml", {});
  EXPECT_EQ(lab.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(MessageOf(lab.status()),
            "no/such/lab.yaml: No such file or directory; the path of a lab file, such as "
            "labs/compare.yaml");
}

TEST(LabReader, AFileIsReadAsItsTextIs) {
  const std::string path = ::testing::TempDir() + "lab_reader_test.yaml";
  std::ofstream(path) << kSmall;
  const auto lab = ReadLabFile(path, {});
  ASSERT_TRUE(lab.ok()) << MessageOf(lab.status());
  EXPECT_EQ(lab->file, path);
  EXPECT_EQ(lab->text, kSmall);
  EXPECT_EQ(lab->hash, Read(kSmall).hash);
  std::remove(path.c_str());
}

// What each entry of a scenario becomes; a live injection is read by the same code.
TEST(Injections, SlowByFactorOrTime) {
  const auto factor =
      ReadInjection("{rank: 2, slow: {phase: optimizer, factor: 3, rotate_every: 5}}");
  ASSERT_TRUE(factor.ok()) << MessageOf(factor.status());
  EXPECT_EQ(factor->at_step, 0);
  EXPECT_EQ(factor->text, "{rank: 2, slow: {phase: optimizer, factor: 3, rotate_every: 5}}");
  const auto& slow = std::get<SlowPhase>(factor->effect);
  EXPECT_EQ(slow.rank, 2);
  EXPECT_EQ(slow.phase, Phase::kOptimizer);
  EXPECT_EQ(slow.factor, 3);
  EXPECT_EQ(slow.rotate_every, 5);
  const auto extra = ReadInjection("{rank: 0, slow: {extra: 50ms}}");
  ASSERT_TRUE(extra.ok()) << MessageOf(extra.status());
  EXPECT_EQ(std::get<SlowPhase>(extra->effect).phase, Phase::kBackward);
  EXPECT_EQ(std::get<SlowPhase>(extra->effect).extra, std::chrono::milliseconds(50));
}

TEST(Injections, PauseKillAndReset) {
  const auto pause = ReadInjection("{rank: 1, pause: 500ms, every_steps: 4}");
  ASSERT_TRUE(pause.ok()) << MessageOf(pause.status());
  EXPECT_EQ(std::get<Pause>(pause->effect).duration, std::chrono::milliseconds(500));
  EXPECT_EQ(std::get<Pause>(pause->effect).every_steps, 4);
  const auto kill = ReadInjection("{rank: 3, kill: true}");
  ASSERT_TRUE(kill.ok()) << MessageOf(kill.status());
  EXPECT_EQ(std::get<Kill>(kill->effect).rank, 3);
  const auto reset = ReadInjection("{reset: true}");
  ASSERT_TRUE(reset.ok()) << MessageOf(reset.status());
  EXPECT_TRUE(std::holds_alternative<Heal>(reset->effect));
}

TEST(Injections, LinksInOneOrBothDirections) {
  const auto both = ReadInjection("{link: 1-2, latency: 5ms, bandwidth: 10Gbit/s, loss: 0.01}");
  ASSERT_TRUE(both.ok()) << MessageOf(both.status());
  const auto& link = std::get<ShapeLink>(both->effect);
  EXPECT_EQ(link.spec.alpha, std::chrono::milliseconds(5));
  EXPECT_EQ(link.spec.bandwidth.bytes_per_second, 10e9 / 8);
  EXPECT_EQ(link.spec.loss_probability, 0.01);
  const auto worker = [](Rank rank) { return Endpoint{Role::kWorker, rank}; };
  EXPECT_EQ(link.WayTo(worker(1)), worker(2));
  EXPECT_EQ(link.WayTo(worker(2)), worker(1));
  EXPECT_EQ(link.WayTo(worker(0)), std::nullopt);
  EXPECT_EQ(link.WayFrom(worker(1)), std::nullopt) << "worker 2 shapes its own way";
  const auto one = ReadInjection("{link: 1->2, jitter: 1ms}");
  ASSERT_TRUE(one.ok()) << MessageOf(one.status());
  EXPECT_EQ(std::get<ShapeLink>(one->effect).WayTo(worker(1)), worker(2));
  EXPECT_EQ(std::get<ShapeLink>(one->effect).WayTo(worker(2)), std::nullopt);
  EXPECT_EQ(std::get<ShapeLink>(one->effect).spec.bandwidth.bytes_per_second,
            std::numeric_limits<double>::infinity());
}

TEST(Injections, TheWorkerShapesBothWaysOfALinkToAServer) {
  const Endpoint worker{Role::kWorker, 1};
  const Endpoint server{Role::kServer, 0};
  const auto link = [](const std::string& name) {
    const auto read = ReadInjection("{link: " + name + ", latency: 5ms}");
    EXPECT_TRUE(read.ok()) << MessageOf(read.status());
    return read.ok() ? std::get<ShapeLink>(read->effect) : ShapeLink{};
  };
  for (const char* name : {"1-ps0", "ps0-1"}) {
    EXPECT_EQ(link(name).WayTo(worker), server) << name;
    EXPECT_EQ(link(name).WayFrom(worker), server) << name;
  }
  EXPECT_EQ(link("1->ps0").WayTo(worker), server);
  EXPECT_EQ(link("1->ps0").WayFrom(worker), std::nullopt);
  EXPECT_EQ(link("ps0->1").WayTo(worker), std::nullopt);
  EXPECT_EQ(link("ps0->1").WayFrom(worker), server);
  EXPECT_EQ(link("ps0->1").WayFrom({Role::kWorker, 0}), std::nullopt);
  for (const char* name : {"ps0-ps1", "1-1", "ps-1", "1-ps", "1-psx", "-1-ps0"}) {
    EXPECT_FALSE(ReadInjection(std::string("{link: ") + name + ", latency: 5ms}").ok()) << name;
  }
}

TEST(Injections, TheTextOfAnInjectionReadsBackAsItself) {
  const LabSpec spec = Read(Plus("scenario: [{at_step: 4, until_step: 6, rank: 1, slow: {phase: "
                                 "input, factor: 2}}]\n"))
                           .parts[0]
                           .cells[0]
                           .spec;
  const auto again = ReadInjection(spec.scenario.injections.at(0).text);
  ASSERT_TRUE(again.ok()) << MessageOf(again.status());
  EXPECT_EQ(again->at_step, 4);
  EXPECT_EQ(again->until_step, 6);
  EXPECT_EQ(std::get<SlowPhase>(again->effect).rank, 1);
}

TEST(Injections, SayWhatIsWrong) {
  const auto refusal = [](std::string_view text) {
    const auto injection = ReadInjection(text);
    EXPECT_FALSE(injection.ok());
    return MessageOf(injection.status());
  };
  EXPECT_EQ(refusal("{rank: 2}"),
            "injection: it has no effect; one of slow, pause, link, nan, kill, reset");
  EXPECT_EQ(refusal("{rank: 2, slwo: {factor: 2}}"),
            "injection: slwo: unknown key; did you mean \"slow\"?");
  EXPECT_EQ(
      refusal("{rank: 2, wrong_dtype: true}"),
      "injection: wrong_dtype is not supported yet; one of slow, pause, link, nan, kill, reset");
  EXPECT_EQ(refusal("{rank: 2, kill: true, pause: 1s}"),
            "injection: it has several effects; one entry each: one of slow, pause, link, "
            "nan, kill, reset");
  EXPECT_EQ(refusal("{rank: 2, slow: {phase: backward}}"),
            "injection: slow needs factor (2.0) or extra (50ms), one of the two");
  EXPECT_EQ(refusal("{rank: 2, pause: 5}"),
            "injection: pause is \"5\"; a duration with its unit, such as 500ms, 5us or 2s");
  EXPECT_EQ(refusal("{link: 1-1, latency: 5ms}"),
            "injection: link is \"1-1\"; two ranks, such as 1-2 (both directions) or 1->2, "
            "or a rank and a server, such as 1-ps0");
  EXPECT_EQ(refusal("{link: 1-2}"),
            "injection: latency is missing; a link needs latency, jitter, bandwidth or loss");
  EXPECT_EQ(refusal("{pause: 1s}"), "injection: rank is missing; the rank that it hits, from 0");
}

}  // namespace
}  // namespace ranklab::experiment
