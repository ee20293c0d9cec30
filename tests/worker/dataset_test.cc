#include "worker/dataset.h"

#include <algorithm>
#include <array>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/status.h"
#include "worker/digits.h"
#include "worker/synthetic.h"

namespace ranklab::worker {
namespace {

using testing::HasSubstr;

// Published counts of the data set: see data/README.md.
TEST(Digits, AreTheWholeDataSet) {
  const auto data = LoadDataset(experiment::DataSpec(), ".");
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->inputs, 64);
  EXPECT_EQ(data->classes, 10);
  EXPECT_EQ(data->train.samples(), 1437);
  EXPECT_EQ(data->test.samples(), 360);
  double pixels = 0;
  std::array<int, 10> of_class{};
  for (const Split* split : {&data->train, &data->test}) {
    ASSERT_EQ(std::ssize(split->inputs), split->samples() * 64);
    for (const float pixel : split->inputs) {
      ASSERT_TRUE(0.0F <= pixel && pixel <= 1.0F);
      pixels += pixel * 16;
    }
    for (const std::int32_t label : split->labels) {
      ++of_class.at(label);
    }
  }
  EXPECT_EQ(pixels, 561718);
  EXPECT_THAT(of_class, testing::ElementsAre(178, 182, 177, 183, 181, 182, 181, 179, 174, 180));
}

TEST(Digits, KeepPixelsAndLabelTogether) {
  EXPECT_THAT(std::string(DigitsText().substr(0, 16)), HasSubstr("0,0,5,13,9,1,0,0"));
  const auto data = LoadDigits(1);
  ASSERT_TRUE(data.ok());
  // The file's first line: a zero that begins with these pixels.
  const std::vector<float> first{0, 0, 5, 13, 9, 1, 0, 0, 0, 0, 13, 15, 10, 15, 5, 0};
  int found = 0;
  for (const Split* split : {&data->train, &data->test}) {
    for (std::int64_t i = 0; i < split->samples(); ++i) {
      if (std::equal(first.begin(), first.end(), split->inputs.begin() + i * 64,
                     [](float pixel, float input) { return pixel == input * 16; })) {
        ++found;
        EXPECT_EQ(split->labels[i], 0);
      }
    }
  }
  EXPECT_EQ(found, 1);
}

TEST(Digits, SplitFollowsItsSeedAlone) {
  const auto one = LoadDigits(1);
  const auto again = LoadDigits(1);
  const auto other = LoadDigits(2);
  ASSERT_TRUE(one.ok() && again.ok() && other.ok());
  EXPECT_EQ(one->train.inputs, again->train.inputs);
  EXPECT_EQ(one->test.labels, again->test.labels);
  EXPECT_NE(one->test.inputs, other->test.inputs);
}

experiment::DataSpec SyntheticSpec() {
  experiment::DataSpec spec;
  spec.kind = "synthetic";
  spec.samples = 2000;
  spec.inputs = 16;
  spec.classes = 5;
  spec.split_seed = 3;
  return spec;
}

TEST(Synthetic, HasTheSizesAskedForAndEveryClass) {
  const auto data = LoadDataset(SyntheticSpec(), ".");
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->train.samples(), 2000);
  EXPECT_EQ(data->test.samples(), 500);
  EXPECT_EQ(std::ssize(data->train.inputs), 2000 * 16);
  std::array<int, 5> of_class{};
  for (const std::int32_t label : data->train.labels) {
    ++of_class.at(label);
  }
  EXPECT_THAT(of_class, testing::Each(testing::Gt(20)));
  double sum = 0;
  double square = 0;
  for (const float x : data->train.inputs) {
    sum += x;
    square += static_cast<double>(x) * x;
  }
  EXPECT_NEAR(sum / 32000, 0, 0.03) << "five deviations of the mean";
  EXPECT_NEAR(square / 32000, 1, 0.04) << "five deviations of the variance";
}

TEST(Synthetic, IsTheSameForTheSameSeed) {
  experiment::DataSpec spec = SyntheticSpec();
  const auto one = MakeSynthetic(spec);
  const auto again = MakeSynthetic(spec);
  spec.split_seed = 4;
  const auto other = MakeSynthetic(spec);
  ASSERT_TRUE(one.ok() && again.ok() && other.ok());
  EXPECT_EQ(one->train.inputs, again->train.inputs);
  EXPECT_EQ(one->train.labels, again->train.labels);
  EXPECT_NE(one->train.inputs, other->train.inputs);
}

TEST(Synthetic, RefusesSizesOutOfRangeBeforeAllocating) {
  for (const auto& [samples, inputs, classes] : {std::tuple{std::int64_t{0}, 4, 2},
                                                 {1, 0, 2},
                                                 {1, 4, 1},
                                                 {INT64_MAX, 4, 2},
                                                 {1, 4, 1 << 20}}) {
    experiment::DataSpec spec = SyntheticSpec();
    spec.samples = samples;
    spec.inputs = inputs;
    spec.classes = classes;
    EXPECT_EQ(MakeSynthetic(spec).status().code(), absl::StatusCode::kInvalidArgument)
        << samples << " x " << inputs << ", " << classes << " classes";
  }
}

TEST(LoadDataset, AnUnknownKindListsThoseThatThereAre) {
  experiment::DataSpec spec;
  spec.kind = "mnist";
  const auto data = LoadDataset(spec, ".");
  ASSERT_EQ(data.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(data.status()), HasSubstr("digits, idx, synthetic"));
}

}  // namespace
}  // namespace ranklab::worker
