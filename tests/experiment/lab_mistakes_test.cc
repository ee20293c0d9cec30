// Every mistake in a lab file has one line: place, what is wrong, what would be right.
#include <string>

#include <gtest/gtest.h>

#include "tests/experiment/lab_support.h"

namespace ranklab::experiment {
namespace {

TEST(LabReader, SaysTheNearestKeyAndTheLine) {
  EXPECT_EQ(Refusal(With("exchange", "exchange: {kind: collective, algoritm: ring}")),
            "x.yaml:6: exchange.algoritm: unknown key; did you mean \"algorithm\"?");
  EXPECT_EQ(Refusal(Plus("fabrik: {preset: native}\n")),
            "x.yaml:8: fabrik: unknown key; did you mean \"fabric\"?");
}

TEST(LabReader, SaysWhatWouldBeRight) {
  EXPECT_EQ(Refusal(With("exchange", "exchange: {algorithm: rign}")),
            "x.yaml:6: exchange.algorithm is \"rign\"; one of auto, ring, bidirectional_ring, "
            "multi_channel_ring, recursive_doubling, rabenseifner, binomial, double_binary_tree, "
            "hierarchical");
  EXPECT_EQ(Refusal(With("exchange", "exchange: {bucket: 25}")),
            "x.yaml:6: exchange.bucket is \"25\"; a size with its unit, such as 25MiB, 64KiB or "
            "1MB");
  EXPECT_EQ(Refusal(With("exchange", "exchange: {timeout: 5MiB}")),
            "x.yaml:6: exchange.timeout is \"5MiB\"; a duration with its unit, such as 500ms, 5us "
            "or 2s");
  EXPECT_EQ(Refusal(With("train", "train: {steps: many, global_batch: 8}")),
            "x.yaml:4: train.steps is \"many\"; a whole number from 1 to 1073741824");
  EXPECT_EQ(Refusal(With("cluster", "cluster: {workers: -1}")),
            "x.yaml:5: cluster.workers is \"-1\"; a whole number from 1 to 1048576");
  EXPECT_EQ(Refusal(With("cluster", "cluster: {workers: 0}")),
            "x.yaml:5: cluster.workers is \"0\"; 0 is not a number of workers: at least 1, or all");
  EXPECT_EQ(
      Refusal(With("cluster", "cluster: {workers: 2, suspect_after: 999ms}")),
      "x.yaml:5: cluster.suspect_after is \"999ms\"; at least 1s: a process is heard of every "
      "200 ms, and later on a busy machine");
  EXPECT_EQ(Refusal(With("train", "train: {steps: 10, global_batch: 8, learning_rate: 1e30}")),
            "x.yaml:4: train.learning_rate is \"1e30\"; a number above 0 and up to 1e+18");
  EXPECT_EQ(Refusal(With("cluster", "cluster: 4")),
            "x.yaml:5: cluster is \"4\"; a map of its keys");
  EXPECT_EQ(Refusal(With("cluster", "cluster: {on_loss: continue}")),
            "x.yaml:5: cluster.on_loss continue needs exchange.kind ps: a collective has no step "
            "without one of its ranks");
  EXPECT_EQ(Refusal(With("train", "train: {global_batch: 8}")),
            "x.yaml:4: train.steps is missing; a whole number, at least 1");
}

TEST(LabReader, SaysWhatNcclAndASharedGpuNeed) {
  EXPECT_EQ(Refusal(With("cluster", "cluster: {workers: 5, shared_gpu: true}")),
            "x.yaml:5: cluster.shared_gpu with 5 workers; at most 4 share a GPU");
  EXPECT_EQ(Refusal(With("cluster", "cluster: {workers: 2, device: cpu, shared_gpu: true}")),
            "x.yaml:5: cluster.shared_gpu is true and cluster.device cpu; there is no GPU to "
            "share");
  EXPECT_EQ(Refusal(With("exchange", "exchange: {kind: nccl}")),
            "x.yaml:7: fabric.preset is pcie4_x16, and what NCCL sends passes no wire of ranklab's "
            "that could shape it; with exchange.kind nccl, native");
}

TEST(LabReader, SaysWhatAGptNeeds) {
  const auto with = [](const std::string& model, const std::string& data) {
    return With("model", "model: " + model, With("data", "data: " + data));
  };
  const std::string gpt = "{kind: gpt, layers: 2, hidden: 12, heads: 4, context: 16}";
  EXPECT_EQ(Refusal(With("model", "model: " + gpt)),
            "x.yaml:3: data.kind is \"digits\"; model.kind gpt takes tokens: one of grammar, text");
  EXPECT_EQ(Refusal(With("data", "data: {kind: grammar}")),
            "x.yaml:3: data.kind grammar is tokens; model.kind mlp takes digits, idx or synthetic");
  EXPECT_EQ(
      Refusal(with("{kind: gpt, layers: 2, hidden: 12, heads: 5, context: 16}", "{kind: grammar}")),
      "x.yaml:2: model.heads is \"5\"; a divisor of hidden (12)");
  EXPECT_EQ(Refusal(with(gpt, "{kind: grammar, shortest: 17}")),
            "x.yaml:3: data.shortest is 17; at most model.context, 16");
  EXPECT_EQ(Refusal(with(gpt, "{kind: grammar, branching: 20}")),
            "x.yaml:3: data.branching is \"20\"; a whole number from 2 to 16");
  EXPECT_EQ(Refusal(with(gpt, "{kind: grammar, branching: 1}")),
            "x.yaml:3: data.branching is \"1\"; a whole number from 2 to 16");
  EXPECT_EQ(Refusal(with(gpt, "{kind: text}")),
            "x.yaml:3: data.file is missing; any file, relative to the lab file; its bytes are "
            "tokens");
  EXPECT_EQ(Refusal(with(gpt, "{kind: grammar, file: x}")),
            "x.yaml:3: data.file goes with kind text, not grammar");
  EXPECT_EQ(Refusal(With("model", "model: {kind: mlp, layers: [64, 10], tied: true}")),
            "x.yaml:2: model.tied goes with kind gpt, not mlp");
  EXPECT_EQ(Refusal(With("train", "train: {steps: 10, global_batch: 8, recompute: true}")),
            "x.yaml:4: train.recompute goes with model.kind gpt, not mlp");
}

TEST(LabReader, SaysWhichOptimizersAndSchedulesThereAre) {
  EXPECT_EQ(Refusal(With("train", "train: {steps: 10, global_batch: 8, optimizer: adam}")),
            "x.yaml:4: train.optimizer is \"adam\"; one of sgd, momentum, adamw");
  for (const std::string beta : {"beta1", "beta2"}) {
    EXPECT_EQ(Refusal(With("train", "train: {steps: 10, global_batch: 8, " + beta + ": 1}")),
              "x.yaml:4: train." + beta + " is \"1\"; a number of at least 0 and below 1");
  }
  EXPECT_EQ(Refusal(With("train", "train: {steps: 10, global_batch: 8, clip_norm: 1}",
                         With("exchange", "exchange: {kind: ps}"))),
            "x.yaml:4: train.clip_norm needs the whole gradient, of which a parameter server sees "
            "its part; with exchange.kind collective or none");
  EXPECT_EQ(Refusal(With("train", "train: {steps: 10, global_batch: 8, scale_rate: cubic}")),
            "x.yaml:4: train.scale_rate is \"cubic\"; one of none, linear, sqrt");
}

TEST(LabReader, SaysWhichDTypesThereAreAndWhatScalingTheLossNeeds) {
  EXPECT_EQ(Refusal(With("train", "train: {steps: 10, global_batch: 8, precision: fp8}")),
            "x.yaml:4: train.precision is \"fp8\"; one of fp32, bf16, fp16");
  EXPECT_EQ(Refusal(With("exchange", "exchange: {wire_dtype: int8}")),
            "x.yaml:6: exchange.wire_dtype is \"int8\"; one of fp32, bf16, fp16");
  EXPECT_EQ(Refusal(With("train", "train: {steps: 10, global_batch: 8, precision: fp16}",
                         With("exchange", "exchange: {kind: ps, staleness: 1}"))),
            "x.yaml:4: train.precision fp16 scales the loss, and an overflow skips the step on all "
            "ranks; with exchange.staleness 0, or bf16, which needs no scale");
  EXPECT_EQ(Refusal(With("exchange", "exchange: {kind: ps, staleness: none, wire_dtype: fp16}")),
            "x.yaml:6: exchange.wire_dtype fp16 scales the loss, and an overflow skips the step on "
            "all ranks; with exchange.staleness 0, or bf16, which needs no scale");
  EXPECT_EQ(Refusal(Plus("scenario: [{at_step: 3, rank: 1, nan: false}]\n")),
            "x.yaml:8: scenario[0].nan is \"false\"; true");
}

TEST(LabReader, SaysHowManyLoadersAndHowMuchMemoryThereCanBe) {
  EXPECT_EQ(Refusal(With("data", "data: {kind: digits, loaders: 0}")),
            "x.yaml:3: data.loaders is \"0\"; a whole number from 1 to 64");
  EXPECT_EQ(Refusal(With("data", "data: {kind: digits, prefetch: 0}")),
            "x.yaml:3: data.prefetch is \"0\"; a whole number from 1 to 1024");
  EXPECT_EQ(Refusal(With("cluster", "cluster: {workers: 2, memory_cap: 64}")),
            "x.yaml:5: cluster.memory_cap is \"64\"; a size with its unit, such as 25MiB, 64KiB or "
            "1MB");
}

TEST(LabReader, RefusesWhatDoesNotGoTogether) {
  EXPECT_EQ(Refusal(With("train", "train: {steps: 10, global_batch: 8, batch_per_worker: 4}")),
            "x.yaml:4: train gives global_batch and batch_per_worker; one of the two");
  EXPECT_EQ(Refusal(With("train", "train: {steps: 10}")),
            "x.yaml:4: train gives no batch; global_batch (of all workers together) or "
            "batch_per_worker");
  EXPECT_EQ(Refusal(With("train", "train: {steps: 10, global_batch: 1}")),
            "x.yaml:4: train.global_batch is 1 for 2 workers; at least one sample a worker");
  EXPECT_EQ(Refusal(With("train", "train: {steps: 2, global_batch: 8}")),
            "x.yaml:4: train.steps is 2 and train.warmup_steps 2; no step is left to count, at "
            "least 3 steps");
  EXPECT_EQ(Refusal(With("train", "train: {steps: 10, global_batch: 8, accumulate: 5}")),
            "x.yaml:4: train.accumulate is 5, but a worker has 4 samples a step; at most one "
            "micro-batch a sample");
  EXPECT_EQ(Refusal(With("cluster", "cluster: {workers: all}")),
            "x.yaml:4: train.global_batch needs a number of workers; with cluster.workers all, "
            "give batch_per_worker");
  EXPECT_EQ(Refusal(With("exchange", "exchange: {kind: ps}"), {"cluster.servers=0"}),
            "--set cluster.servers=0: cluster.servers is 0; exchange.kind ps needs at least 1");
  EXPECT_EQ(Refusal(With("exchange", "exchange: {kind: none}")),
            "x.yaml:5: cluster.workers is 2; exchange.kind none is one worker alone");
  EXPECT_EQ(Refusal(With("exchange", "exchange: {kind: collective, staleness: 2}")),
            "x.yaml:6: exchange.staleness goes with kind ps, not collective");
  EXPECT_EQ(Refusal(With("exchange", "exchange: {kind: ps, algorithm: ring}")),
            "x.yaml:6: exchange.algorithm goes with kind collective, not ps");
  EXPECT_EQ(Refusal(With("exchange", "exchange: {kind: ps, staleness: 1, order: rank}")),
            "x.yaml:6: exchange.order is \"rank\"; rank order needs staleness 0: only a "
            "synchronous step has all gradients");
  EXPECT_EQ(Refusal(With("model", "model: {kind: mlp, layers: [784, 10]}")),
            "x.yaml:2: model.layers begins with 784; digits has 64 inputs");
  EXPECT_EQ(Refusal(With("model", "model: {kind: mlp, layers: [64, 12]}")),
            "x.yaml:2: model.layers ends with 12; digits has 10 classes");
  EXPECT_EQ(
      Refusal(With("model", "model: {kind: gpt, layers: 2, hidden: 10, heads: 3, context: 8}")),
      "x.yaml:2: model.heads is \"3\"; a divisor of hidden (10)");
  EXPECT_EQ(Refusal(With("data", "data: {kind: digits, inputs: 64}")),
            "x.yaml:3: data.inputs goes with kind synthetic, not digits");
  EXPECT_EQ(
      Refusal(With("data", "data: {kind: idx, images: a, labels: b, test_images: c}")),
      "x.yaml:3: data.test_labels is missing; a file in IDX format, relative to the lab file");
}

TEST(LabReader, RefusesAScenarioThatHitsNobody) {
  EXPECT_EQ(Refusal(Plus("scenario:\n  - {at_step: 3, rank: 2, kill: true}\n")),
            "x.yaml:9: scenario[0]: rank 2 of 2 workers; ranks are 0 to 1");
  EXPECT_EQ(Refusal(Plus("scenario: [{at_step: 11, rank: 1, kill: true}]\n")),
            "x.yaml:8: scenario[0]: at_step 11 is after the last step, 10");
  EXPECT_EQ(Refusal(Plus("scenario: [{rank: 1, kill: true}]\n")),
            "x.yaml:8: scenario[0].at_step is missing; the step that it begins in, from 1");
  EXPECT_EQ(Refusal(Plus("scenario: [{at_step: 5, until_step: 4, rank: 1, kill: true}]\n")),
            "x.yaml:8: scenario[0].until_step is \"4\"; a step from at_step (5) on");
  EXPECT_EQ(Refusal(Plus("scenario: [{at_step: 5, rank: 1, partition: [1]}]\n")),
            "x.yaml:8: scenario[0].partition is not supported yet; one of slow, pause, link, nan, "
            "kill, reset");
}

TEST(LabReader, RefusesASweepThatCannotBe) {
  EXPECT_EQ(Refusal(Plus("sweep: {cluster.workers: []}\n")),
            "x.yaml:8: sweep.cluster.workers is a list; at least one value");
  EXPECT_EQ(Refusal(Plus("sweep: {cluster.workers: 4}\n")),
            "x.yaml:8: sweep.cluster.workers is \"4\"; a list, such as [1, 2, 4]");
  EXPECT_EQ(Refusal(Plus("sweep: {clutser.workers: [1, 2]}\n")),
            "x.yaml:8: sweep.clutser: unknown key; did you mean \"cluster\"?");
  EXPECT_EQ(Refusal(Plus("sweep: {cluster.wrokers: [1, 2]}\n")),
            "x.yaml:8: cluster.wrokers: unknown key; did you mean \"workers\"?");
  EXPECT_EQ(Refusal(Plus("sweep:\n  exchange.bucket: [1MiB]\n  exchange: [{kind: ps}]\n")),
            "x.yaml:10: sweep.exchange would undo sweep.exchange.bucket before it; put it first");
  EXPECT_EQ(
      Refusal(Plus("sweep:\n  seed: [1, 2]\n  fabric.preset:\n    - native\n    - pcie9\n")),
      "x.yaml:12: fabric.preset is \"pcie9\"; one of native, pcie3_x16, pcie4_x16, pcie5_x16, "
      "nvlink2, nvlink3, nvlink4, nvlink5, ib_edr, ib_hdr, ib_ndr, ib_xdr, ethernet_1g, "
      "ethernet_10g, ethernet_25g, ethernet_100g");
}

TEST(LabReader, RefusesMoreCellsThanALabMayHave) {
  std::string list = "[1";
  for (int seed = 2; seed <= 101; ++seed) {
    list += ", " + std::to_string(seed);
  }
  list += "]";
  EXPECT_EQ(Refusal(Plus("sweep: {seed: " + list + ", data.split_seed: " + list + "}\n")),
            "x.yaml:8: the sweep makes more than 10000 cells");
}

TEST(LabReader, NamesAreNeededDistinctAndFitForAFolder) {
  EXPECT_EQ(Refusal(With("name", "question: What?")),
            "x.yaml:1: name is missing; up to 64 letters, digits, - and _ (it names a folder)");
  EXPECT_EQ(
      Refusal(With("name", "name: ../../etc")),
      "x.yaml:1: name is \"../../etc\"; up to 64 letters, digits, - and _ (it names a folder)");
  EXPECT_EQ(Refusal(Plus("parts:\n  - {name: a}\n  - {name: a}\n")),
            "x.yaml:10: parts[1].name is \"a\"; a name that no other part has");
  EXPECT_EQ(Refusal(Plus("parts: []\n")), "x.yaml:8: parts is a list; a list of at least one part");
  EXPECT_EQ(Refusal(Plus("parts: [{name: a, wiht: {}}]\n")),
            "x.yaml:8: parts[0].wiht: unknown key; did you mean \"with\"?");
  EXPECT_EQ(Refusal(Plus("parts: [{name: a, with: {trian: {steps: 4}}}]\n")),
            "x.yaml:8: with.trian: unknown key; did you mean \"train\"?");
  EXPECT_EQ(Refusal(Plus("parts: [{name: a, with: {train: {steps: 0}}}]\n")),
            "x.yaml:8: train.steps is \"0\"; a whole number from 1 to 1073741824 (part a)");
}

TEST(LabReader, AnOverrideIsNamedWithItsText) {
  EXPECT_EQ(Refusal(kSmall, {"exchange.algoritm=ring"}),
            "--set exchange.algoritm=ring: unknown key; did you mean \"algorithm\"?");
  EXPECT_EQ(Refusal(kSmall, {"fabrik.preset=native"}),
            "--set fabrik.preset=native: fabrik: unknown key; did you mean \"fabric\"?");
  EXPECT_EQ(Refusal(kSmall, {"train.steps=0"}),
            "--set train.steps=0: train.steps is \"0\"; a whole number from 1 to 1073741824");
  EXPECT_EQ(Refusal(kSmall, {"train.steps"}),
            "--set train.steps: not path=value, such as train.steps=8");
  EXPECT_EQ(Refusal(kSmall, {"train.steps=\"8"}),
            "--set train.steps=\"8: not YAML: illegal EOF in scalar");
}

TEST(LabReader, ExpectationsAreCheckedBeforeAnythingRuns) {
  EXPECT_EQ(Refusal(Plus("expect: [acuracy > 0.9]\n")),
            "x.yaml:8: expect \"acuracy > 0.9\": unknown metric \"acuracy\"; did you mean "
            "\"accuracy\"?");
  EXPECT_EQ(Refusal(Plus("expect: accuracy > 0.9\n")),
            "x.yaml:8: expect is \"accuracy > 0.9\"; a list, such as [accuracy > 0.95]");
  EXPECT_EQ(Refusal(Plus("expect: [step_ms < 2 times pps]\n")),
            "x.yaml:8: expect \"step_ms < 2 times pps\": no cell has the exchange \"pps\" after "
            "times; one of ring");
  EXPECT_EQ(Refusal(Plus("expect: [efficiency > 0.8 where fabric.preste = nvlink4]\n")),
            "x.yaml:8: expect \"efficiency > 0.8 where fabric.preste = nvlink4\": unknown path "
            "\"fabric.preste\" after where; did you mean \"fabric.preset\"?");
}

TEST(LabReader, AWhereThatNoCellMeetsIsAMistake) {
  const std::string sweep =
      "sweep: {exchange: [{kind: ps}, {kind: collective, algorithm: ring}]}\n";
  EXPECT_EQ(Refusal(Plus(sweep + "expect: [accuracy > 0.9 where exchange = pss]\n")),
            "x.yaml:9: expect \"accuracy > 0.9 where exchange = pss\": no cell has exchange = pss; "
            "did you mean \"ps\"?");
  EXPECT_EQ(Refusal(Plus(sweep + "expect: [accuracy > 0.9 where cluster.workers = 4]\n")),
            "x.yaml:9: expect \"accuracy > 0.9 where cluster.workers = 4\": no cell has "
            "cluster.workers = 4; one of 2");
  Read(Plus(sweep + "expect: [accuracy > 0.9 where exchange = ps and cluster.workers = 2.0]\n"));
}

TEST(LabReader, ALinkThatTheExchangeDoesNotUseIsAMistake) {
  const std::string on_workers = "scenario: [{at_step: 2, link: 0-1, latency: 5ms}]\n";
  Read(Plus(on_workers));
  EXPECT_EQ(Refusal(Plus(on_workers), {"exchange={kind: ps}"}),
            "x.yaml:8: scenario[0]: a link between two workers, who speak with servers alone when "
            "exchange.kind is ps; such as 0-ps0");
  EXPECT_EQ(
      Refusal(Plus("scenario: [{at_step: 2, link: 1-ps0, latency: 5ms}]\n")),
      "x.yaml:8: scenario[0]: a link to ps0, but exchange.kind is not ps: there are no servers; "
      "two workers, such as 0-1");
}

TEST(LabReader, AKeyIsListedOnce) {
  const auto read = ReadInjection("{rank: 1, quack: true}");
  ASSERT_FALSE(read.ok());
  const std::string message = MessageOf(read.status());
  EXPECT_EQ(message.find("slow"), message.rfind("slow")) << message;
}

TEST(LabReader, AFolderIsNoLabFile) {
  const auto read = ReadLabFile(::testing::TempDir(), {});
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(MessageOf(read.status()),
            ::testing::TempDir() +
                " is a folder, not a lab file; the path of one, such as labs/compare.yaml");
}

TEST(LabReader, OnlyOneDocumentOfTextInUtf8) {
  EXPECT_EQ(Refusal(""), "x.yaml: empty");
  EXPECT_EQ(Refusal("[1, 2]"), "x.yaml:1: not a lab: a map of name, model, train, ...");
  EXPECT_EQ(Refusal("a: 1\n---\nb: 2\n"), "x.yaml: more than one document (---); a lab is one");
  EXPECT_EQ(Refusal("name: \xff\n"), "x.yaml:1: not text in UTF-8 (byte 0xff)");
  EXPECT_EQ(Refusal("name: a\nname: b\n"), "x.yaml:2: key \"name\" stands twice in one map");
  EXPECT_EQ(Refusal("a: &x 1\nb: *x\n"),
            "x.yaml:1: an anchor (&name); write the value out where it is needed");
  EXPECT_EQ(Refusal(std::string((1 << 20) + 1, '#')), "x.yaml: 1048577 bytes; at most 1048576");
}

}  // namespace
}  // namespace ranklab::experiment
