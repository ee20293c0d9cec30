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
#include "worker/dataset.h"
#include "worker/digits.h"
#include "worker/evaluate.h"
#include "worker/model.h"
#include "worker/sample_plan.h"

namespace ranklab::worker {
namespace {

struct Training {
  std::vector<int> widths;
  std::uint64_t seed = 1;
  std::uint64_t split_seed = 1;
  std::int64_t global_batch = 0;
  compute::OptimizerSpec optimizer;
};

// One process that trains on digits, step by step.
class Trainer {
 public:
  explicit Trainer(const Training& training)
      : data_(*LoadDigits(training.split_seed)),
        plan_(training.seed, data_.train.samples(), training.global_batch),
        position_(plan_.Start()) {
    experiment::LabSpec spec;
    spec.model = experiment::MlpSpec{.layers = training.widths};
    model_ = *MakeModel(spec, device_, training.global_batch, data_.inputs, data_.classes);
    optimizer_ = *compute::MakeOptimizer(training.optimizer, device_);
    EXPECT_TRUE(model_->Initialize(training.seed).ok());
  }

  // Mean loss of the step's batch, before the update.
  absl::StatusOr<double> Step() {
    std::vector<float> inputs;
    std::vector<std::int32_t> labels;
    for (const std::int64_t sample : plan_.At(position_).samples) {
      const auto row = data_.train.inputs.begin() + sample * data_.inputs;
      inputs.insert(inputs.end(), row, row + data_.inputs);
      labels.push_back(data_.train.labels[sample]);
    }
    position_ = plan_.After(position_);
    const Batch batch{.inputs = Reshape(compute::HostView(std::span(inputs)),
                                        {std::ssize(labels), data_.inputs, 1, 1}),
                      .labels = compute::HostView(std::span(labels))};
    RETURN_IF_ERROR(model_->ZeroGradients());
    for (int layer = 0; layer < model_->layer_count(); ++layer) {
      RETURN_IF_ERROR(model_->ForwardLayer(layer, batch));
    }
    ASSIGN_OR_RETURN(const compute::LossSum loss, model_->Loss(batch));
    for (int layer = model_->layer_count() - 1; layer >= 0; --layer) {
      RETURN_IF_ERROR(model_->BackwardLayer(layer, batch));
    }
    const double weight = static_cast<double>(labels.size());
    RETURN_IF_ERROR(optimizer_->Apply(model_->parameters(), model_->gradients(), 1.0 / weight));
    return loss.loss / weight;
  }

  Model& model() { return *model_; }
  const Dataset& data() const { return data_; }

 private:
  compute::CpuDevice device_{{}};
  Dataset data_;
  SamplePlan plan_;
  SamplePosition position_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<compute::Optimizer> optimizer_;
};

// scripts/record_torch_curves.py trains the same model with PyTorch; both derive weights, split and
// order from the seeds.
TEST(LossCurve, FollowsPyTorchForTwentySteps) {
  std::ifstream file("tests/worker/torch_mlp_curve.json");
  ASSERT_TRUE(file.is_open()) << "run from the repository's root";
  const nlohmann::json record = nlohmann::json::parse(file);
  ASSERT_EQ(record["runs"].size(), 2U);
  for (const nlohmann::json& run : record["runs"]) {
    Trainer trainer({.widths = record["widths"],
                     .seed = record["seed"],
                     .split_seed = record["split_seed"],
                     .global_batch = record["global_batch"],
                     .optimizer = {.name = run["optimizer"],
                                   .learning_rate = run["learning_rate"],
                                   .momentum = run["momentum"]}});
    const std::vector<double> expected = run["losses"];
    ASSERT_EQ(expected.size(), 20U);
    EXPECT_LT(expected.back(), 0.8 * expected.front()) << "a curve that says something";
    for (std::size_t step = 0; step < expected.size(); ++step) {
      const auto loss = trainer.Step();
      ASSERT_TRUE(loss.ok()) << loss.status();
      EXPECT_NEAR(*loss, expected[step], 1e-4 * expected[step])
          << run["optimizer"] << " step " << step + 1;
    }
  }
}

const Training kDigits{.widths = {64, 128, 10},
                       .global_batch = 128,
                       .optimizer = {.name = "momentum", .learning_rate = 0.1, .momentum = 0.9}};

TEST(Digits, AreLearnedTo95Percent) {
  Trainer trainer(kDigits);
  for (int step = 0; step < 150; ++step) {
    ASSERT_TRUE(trainer.Step().ok());
  }
  const auto test = Evaluate(trainer.model(), trainer.data().test, 64);
  ASSERT_TRUE(test.ok());
  EXPECT_GE(test->accuracy, 0.95);
}

TEST(Evaluate, IsTheMeanOverTheSplitHoweverItIsCut) {
  Trainer trainer(kDigits);  // 1,437 samples in parts of 128, the last one of 29
  Training whole = kDigits;
  whole.global_batch = 1437;
  Trainer at_once(whole);
  const Split& split = trainer.data().train;
  const auto parts = Evaluate(trainer.model(), split, 64);
  const auto one = Evaluate(at_once.model(), split, 64);
  ASSERT_TRUE(parts.ok() && one.ok());
  EXPECT_NEAR(parts->loss, one->loss, 1e-6 * one->loss);
  EXPECT_DOUBLE_EQ(parts->accuracy, one->accuracy);
  EXPECT_NEAR(one->loss, std::log(10.0), 0.1) << "near chance before training";
}

TEST(Evaluate, LeavesParametersAndGradientsAlone) {
  Trainer trainer(kDigits);
  ASSERT_TRUE(trainer.Step().ok());
  const std::span<float> gradients = compute::HostValues<float>(trainer.model().gradients());
  const std::vector<float> before(gradients.begin(), gradients.end());
  const auto hash = ParamHash(trainer.model());
  ASSERT_TRUE(Evaluate(trainer.model(), trainer.data().test, 64).ok());
  EXPECT_TRUE(std::equal(before.begin(), before.end(), gradients.begin()));
  EXPECT_EQ(*ParamHash(trainer.model()), *hash);
}

TEST(ParamHash, IsEqualForEqualTrainingAndChangesWithOneBit) {
  Trainer one(kDigits);
  Trainer two(kDigits);
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
