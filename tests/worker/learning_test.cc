// Training as one process does it, against PyTorch and to an accuracy.
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "compute/device.h"
#include "compute/optimizer.h"
#include "core/status.h"
#include "worker/batch.h"
#include "worker/dataset.h"
#include "worker/evaluate.h"
#include "worker/lab_optimizer.h"
#include "worker/model.h"
#include "worker/sample_plan.h"

namespace ranklab::worker {
namespace {

// One process that trains as a lab says, step by step.
class Trainer {
 public:
  explicit Trainer(const experiment::LabSpec& spec)
      : clip_norm_(spec.train.clip_norm),
        data_(*LoadDataset(spec.data, ".")),
        plan_(spec.seed, data_.train.samples(), spec.GlobalBatch()),
        position_(plan_.Start()) {
    model_ = *MakeModel(spec, device_, spec.GlobalBatch(), data_.inputs, data_.classes);
    optimizer_ = *compute::MakeOptimizer(OptimizerOf(spec), device_);
    EXPECT_TRUE(model_->Initialize(spec.seed).ok());
  }

  // Mean loss of the step's batch, before the update.
  absl::StatusOr<double> Step() {
    Split rows;
    for (const std::int64_t sample : plan_.At(position_).samples) {
      rows.Append(data_.train, sample, sample + 1);
    }
    position_ = plan_.After(position_);
    const Batch batch = BatchOf(rows, 0, rows.samples());
    RETURN_IF_ERROR(model_->ZeroGradients());
    for (int layer = 0; layer < model_->layer_count(); ++layer) {
      RETURN_IF_ERROR(model_->ForwardLayer(layer, batch));
    }
    ASSIGN_OR_RETURN(const compute::LossSum loss, model_->Loss(batch, /*scale=*/1.0F));
    for (int layer = model_->layer_count() - 1; layer >= 0; --layer) {
      RETURN_IF_ERROR(model_->BackwardLayer(layer, batch));
    }
    const auto weight = static_cast<double>(rows.CountTargets());
    double scale = 1.0 / weight;
    if (clip_norm_ > 0) {
      ASSIGN_OR_RETURN(const double factor,
                       compute::ClipFactor(model_->gradients(), scale, clip_norm_));
      scale *= factor;
    }
    RETURN_IF_ERROR(optimizer_->Apply(model_->parameters(), model_->gradients(), scale));
    return loss.loss / weight;
  }

  Model& model() { return *model_; }
  const Dataset& data() const { return data_; }

 private:
  double clip_norm_;
  compute::CpuDevice device_{{}};
  Dataset data_;
  SamplePlan plan_;
  SamplePosition position_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<compute::Optimizer> optimizer_;
};

// scripts/record_torch_curves.py trains the same model with PyTorch; both derive weights, data and
// order from the seeds.
nlohmann::json ReadCurves(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.is_open()) << "run from the repository's root";
  return nlohmann::json::parse(file);
}

experiment::LabSpec SpecOf(const nlohmann::json& record, const nlohmann::json& run) {
  experiment::LabSpec spec;
  spec.seed = record["seed"];
  spec.data.split_seed = record["split_seed"];
  spec.train.steps = 20;
  spec.train.global_batch = record["global_batch"];
  spec.train.optimizer = run["optimizer"];
  spec.train.learning_rate = run["learning_rate"];
  spec.train.momentum = run.value("momentum", 0.0);
  spec.train.weight_decay = run.value("weight_decay", 0.0);
  spec.train.clip_norm = run.value("clip_norm", 0.0);
  return spec;
}

void ExpectCurve(const experiment::LabSpec& spec, const std::vector<double>& expected) {
  Trainer trainer(spec);
  ASSERT_EQ(expected.size(), 20U);
  EXPECT_LT(expected.back(), 0.9 * expected.front()) << "a curve that says something";
  for (std::size_t step = 0; step < expected.size(); ++step) {
    const auto loss = trainer.Step();
    ASSERT_TRUE(loss.ok()) << loss.status();
    EXPECT_NEAR(*loss, expected[step], 1e-4 * expected[step])
        << spec.train.optimizer << " step " << step + 1;
  }
}

TEST(LossCurve, OfAnMlpFollowsPyTorchForTwentySteps) {
  const nlohmann::json record = ReadCurves("tests/worker/torch_mlp_curve.json");
  ASSERT_EQ(record["runs"].size(), 2U);
  for (const nlohmann::json& run : record["runs"]) {
    experiment::LabSpec spec = SpecOf(record, run);
    spec.model = experiment::MlpSpec{.layers = record["widths"]};
    ExpectCurve(spec, run["losses"]);
  }
}

TEST(LossCurve, OfAGptOnUnevenSamplesFollowsPyTorchForTwentySteps) {
  const nlohmann::json record = ReadCurves("tests/worker/torch_gpt_curve.json");
  ASSERT_EQ(record["runs"].size(), 4U);
  const nlohmann::json& gpt = record["gpt"];
  const nlohmann::json& grammar = record["grammar"];
  for (const nlohmann::json& run : record["runs"]) {
    experiment::LabSpec spec = SpecOf(record, run);
    spec.model = experiment::GptSpec{.layers = gpt["layers"],
                                     .hidden = gpt["hidden"],
                                     .heads = gpt["heads"],
                                     .context = gpt["context"],
                                     .tied = run["tied"]};
    spec.data.kind = "grammar";
    spec.data.samples = grammar["samples"];
    spec.data.vocabulary = grammar["vocabulary"];
    spec.data.branching = grammar["branching"];
    spec.data.shortest = grammar["shortest"];
    spec.data.context = gpt["context"];
    ExpectCurve(spec, run["losses"]);
  }
}

experiment::LabSpec Digits(int global_batch) {
  experiment::LabSpec spec;
  spec.model = experiment::MlpSpec{.layers = {64, 128, 10}};
  spec.train.global_batch = global_batch;
  spec.train.optimizer = "momentum";
  return spec;
}

TEST(Digits, AreLearnedTo95Percent) {
  Trainer trainer(Digits(128));
  for (int step = 0; step < 150; ++step) {
    ASSERT_TRUE(trainer.Step().ok());
  }
  const auto test = Evaluate(trainer.model(), trainer.data().test);
  ASSERT_TRUE(test.ok());
  EXPECT_GE(test->accuracy, 0.95);
}

TEST(Evaluate, IsTheMeanOverTheSplitHoweverItIsCut) {
  Trainer trainer(Digits(128));  // 1,437 samples in parts of 128, the last one of 29
  Trainer at_once(Digits(1437));
  const Split& split = trainer.data().train;
  const auto parts = Evaluate(trainer.model(), split);
  const auto one = Evaluate(at_once.model(), split);
  ASSERT_TRUE(parts.ok() && one.ok());
  EXPECT_NEAR(parts->loss, one->loss, 1e-6 * one->loss);
  EXPECT_DOUBLE_EQ(parts->accuracy, one->accuracy);
  EXPECT_NEAR(one->loss, std::log(10.0), 0.1) << "near chance before training";
}

TEST(Evaluate, LeavesParametersAndGradientsAlone) {
  Trainer trainer(Digits(128));
  ASSERT_TRUE(trainer.Step().ok());
  const std::span<float> gradients = compute::HostValues<float>(trainer.model().gradients());
  const std::vector<float> before(gradients.begin(), gradients.end());
  const auto hash = ParamHash(trainer.model());
  ASSERT_TRUE(Evaluate(trainer.model(), trainer.data().test).ok());
  EXPECT_TRUE(std::equal(before.begin(), before.end(), gradients.begin()));
  EXPECT_EQ(*ParamHash(trainer.model()), *hash);
}

TEST(ParamHash, IsEqualForEqualTrainingAndChangesWithOneBit) {
  Trainer one(Digits(128));
  Trainer two(Digits(128));
  for (int step = 0; step < 3; ++step) {
    ASSERT_TRUE(one.Step().ok() && two.Step().ok());
  }
  const auto hash = ParamHash(one.model());
  ASSERT_TRUE(hash.ok());
  EXPECT_EQ(hash->size(), 32U);
  EXPECT_EQ(*hash, *ParamHash(two.model()));
  two.model().parameters().data[5] ^= std::byte{1};
  EXPECT_NE(*hash, *ParamHash(two.model()));
}

}  // namespace
}  // namespace ranklab::worker
