// The operations of a gpt: forward passes against plain loops in double precision, backward passes
// against central differences of those. Inputs are normal; outputs begin as NaN where the operation
// promises to overwrite them.
#include <cmath>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compute/device.h"
#include "compute/operations.h"
#include "core/random.h"
#include "core/status.h"
#include "tests/compute/reference_operations.h"

namespace ranklab::compute {
namespace {

using reference::Derivative;
using reference::Doubles;
using Floats = std::vector<float>;

// Relative to the largest magnitude that meets in a sum: float32 over some hundred additions.
constexpr double kTolerance = 2e-5;

Floats Normal(std::int64_t count, Random& random) {
  Floats values(static_cast<std::size_t>(count));
  for (float& value : values) {
    value = static_cast<float>(random.Normal());
  }
  return values;
}

Floats Poison(std::size_t count) { return Floats(count, std::numeric_limits<float>::quiet_NaN()); }

Doubles Wide(const Floats& values) { return {values.begin(), values.end()}; }

TensorView View(Floats& values, std::array<std::int64_t, 4> shape) {
  return Reshape(HostView(std::span(values)), shape);
}

void ExpectNear(const Floats& found, const Doubles& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i], expected[i], kTolerance * std::max(1.0, std::abs(expected[i])))
        << "element " << i;
  }
}

// `found` is the gradient of sum(weights x f(x)) over x.
void ExpectGradient(const Floats& found, const Doubles& x, const Floats& weights,
                    const std::function<Doubles(const Doubles&)>& f) {
  const auto objective = [&](const Doubles& at) {
    const Doubles y = f(at);
    EXPECT_EQ(y.size(), weights.size());
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
      sum += weights[i] * y[i];
    }
    return sum;
  };
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double expected = Derivative(objective, x, i);
    ASSERT_NEAR(found[i], expected, kTolerance * std::max(1.0, std::abs(expected)))
        << "element " << i;
  }
}

class LayerNormTest : public testing::TestWithParam<int> {
 protected:
  const int n_ = GetParam();
  static constexpr int kRows = 3;
  Random random_{7};
  Floats x_ = Normal(kRows * n_, random_);
  Floats gain_ = Normal(n_, random_);
  Floats bias_ = Normal(n_, random_);
  Floats y_ = Poison(kRows * n_);
  Floats statistics_ = Poison(kRows * 2);

  void Forward() {
    ASSERT_TRUE(LayerNorm(View(x_, {kRows, n_, 1, 1}), HostView(std::span(gain_)),
                          HostView(std::span(bias_)), View(y_, {kRows, n_, 1, 1}),
                          View(statistics_, {kRows, 2, 1, 1}))
                    .ok());
  }
};

TEST_P(LayerNormTest, AgreesWithTheReference) {
  Forward();
  ExpectNear(y_, reference::LayerNorm(Wide(x_), Wide(gain_), Wide(bias_)));
}

TEST_P(LayerNormTest, GradientsAreCentralDifferencesAndJoinWhatIsThere) {
  Forward();
  const Floats dy = Normal(kRows * n_, random_);
  Floats dy_in = dy;
  Floats dx = Poison(kRows * n_);
  Floats joined(kRows * n_, 2.0F);
  Floats dgain(n_, 1.0F);
  Floats dbias(n_, 1.0F);
  Floats unused(n_, 0.0F);
  const auto backward = [&](Floats& to, float beta, Floats& gain_to, Floats& bias_to) {
    return LayerNormBackward(View(x_, {kRows, n_, 1, 1}), HostView(std::span(gain_)),
                             View(statistics_, {kRows, 2, 1, 1}), View(dy_in, {kRows, n_, 1, 1}),
                             {.dx = View(to, {kRows, n_, 1, 1}),
                              .beta = beta,
                              .dgain = HostView(std::span(gain_to)),
                              .dbias = HostView(std::span(bias_to))});
  };
  ASSERT_TRUE(backward(dx, 0.0F, dgain, dbias).ok());
  Floats unused_too = unused;
  ASSERT_TRUE(backward(joined, 0.5F, unused, unused_too).ok());
  ExpectGradient(dx, Wide(x_), dy, [&](const Doubles& x) {
    return reference::LayerNorm(x, Wide(gain_), Wide(bias_));
  });
  for (float& value : dgain) {
    value -= 1.0F;
  }
  for (float& value : dbias) {
    value -= 1.0F;
  }
  ExpectGradient(dgain, Wide(gain_), dy, [&](const Doubles& gain) {
    return reference::LayerNorm(Wide(x_), gain, Wide(bias_));
  });
  ExpectGradient(dbias, Wide(bias_), dy, [&](const Doubles& bias) {
    return reference::LayerNorm(Wide(x_), Wide(gain_), bias);
  });
  for (std::size_t i = 0; i < dx.size(); ++i) {
    ASSERT_NEAR(joined[i], dx[i] + 1.0F, 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(Widths, LayerNormTest, testing::Values(2, 5, 16, 37));

TEST(Gelu, AgreesWithTheReferenceFarOutToo) {
  Floats x{-100, -20, -6, -3, -1, -0.1F, 0, 0.1F, 1, 3, 6, 20, 100};
  Random random(3);
  const Floats more = Normal(50, random);
  x.insert(x.end(), more.begin(), more.end());
  const std::int64_t n = std::ssize(x);
  Floats bias = Normal(n, random);
  Doubles sum;
  Doubles expected;
  for (std::int64_t i = 0; i < n; ++i) {
    sum.push_back(static_cast<double>(x[i]) + bias[i]);
    expected.push_back(reference::Gelu(sum.back()));
  }
  Floats y = Poison(x.size());
  ASSERT_TRUE(
      AddBiasGelu(View(x, {1, n, 1, 1}), HostView(std::span(bias)), View(y, {1, n, 1, 1})).ok());
  ExpectNear(x, sum);
  ExpectNear(y, expected);
}

TEST(Gelu, GradientIsTheCentralDifference) {
  Random random(4);
  Floats x = Normal(77, random);
  x[0] = 15;
  x[1] = -15;
  const Floats dy = Normal(77, random);
  Floats dx = dy;
  ASSERT_TRUE(GeluBackward(View(x, {7, 11, 1, 1}), View(dx, {7, 11, 1, 1})).ok());
  ExpectGradient(dx, Wide(x), dy, [](Doubles at) {
    for (double& value : at) {
      value = reference::Gelu(value);
    }
    return at;
  });
}

TEST(Gelu, KeepsNan) {
  Floats x{NAN, 1};
  Floats bias{0, 0};
  Floats y(2);
  ASSERT_TRUE(
      AddBiasGelu(View(x, {1, 2, 1, 1}), HostView(std::span(bias)), View(y, {1, 2, 1, 1})).ok());
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_FALSE(std::isnan(y[1]));
}

TEST(AddBiasResidual, AddsBoth) {
  Floats x{1, 2, 3, 4};
  Floats bias{10, 20};
  Floats residual{100, 200, 300, 400};
  ASSERT_TRUE(AddBiasResidual(View(x, {2, 2, 1, 1}), HostView(std::span(bias)),
                              View(residual, {2, 2, 1, 1}))
                  .ok());
  EXPECT_THAT(x, testing::ElementsAre(111, 222, 313, 424));
}

// Two samples of three tokens over tables of 4 and 5 rows, 2 wide.
class EmbeddingTest : public testing::Test {
 protected:
  std::vector<std::int32_t> tokens_{3, 0, 3, 1, 3, 2};
  TensorView tokens() { return Reshape(HostView(std::span(tokens_)), {2, 3, 1, 1}); }
};

TEST_F(EmbeddingTest, AddsTheTokensRowAndThePositions) {
  Floats table{0, 1, 10, 11, 20, 21, 30, 31};
  Floats positions{100, 200, 300, 400, 500, 600, 700, 800, 900, 1000};
  Floats out = Poison(12);
  ASSERT_TRUE(EmbedTokens(tokens(), View(table, {4, 2, 1, 1}), View(positions, {5, 2, 1, 1}),
                          View(out, {6, 2, 1, 1}))
                  .ok());
  EXPECT_THAT(out,
              testing::ElementsAre(130, 231, 300, 401, 530, 631, 110, 211, 330, 431, 520, 621));
}

TEST_F(EmbeddingTest, BackwardAddsEachRowWhereItCameFrom) {
  Floats dout{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  Floats dtable(8, 0.5F);
  Floats dpositions(10, 0.5F);
  ASSERT_TRUE(EmbedTokensBackward(tokens(), View(dout, {6, 2, 1, 1}), View(dtable, {4, 2, 1, 1}),
                                  View(dpositions, {5, 2, 1, 1}))
                  .ok());
  EXPECT_THAT(dtable, testing::ElementsAre(3.5, 4.5, 7.5, 8.5, 11.5, 12.5, 15.5, 18.5));
  EXPECT_THAT(dpositions,
              testing::ElementsAre(8.5, 10.5, 12.5, 14.5, 16.5, 18.5, 0.5, 0.5, 0.5, 0.5));
}

TEST_F(EmbeddingTest, RefusesATokenOutsideTheTable) {
  Floats table(6);
  Floats positions(10);
  Floats out(12);
  const absl::Status status = EmbedTokens(tokens(), View(table, {3, 2, 1, 1}),
                                          View(positions, {5, 2, 1, 1}), View(out, {6, 2, 1, 1}));
  ASSERT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(status), testing::HasSubstr("token 3 of sample 0 is not one of 3"));
}

// Lengths around the tile of the CPU's implementation.
class AttentionTest : public testing::TestWithParam<reference::Sequences> {
 protected:
  const reference::Sequences s_ = GetParam();
  Random random_{9};
  Floats qkv_ = Normal(s_.samples * s_.length * 3 * s_.hidden(), random_);
  Floats out_ = Poison(qkv_.size() / 3);
  Floats log_sums_ = Poison(static_cast<std::size_t>(s_.samples) * s_.heads * s_.length);

  TensorView Qkv(Floats& values) {
    return View(values, {s_.samples, s_.length, 3 * s_.hidden(), 1});
  }
  TensorView Out(Floats& values) { return View(values, {s_.samples, s_.length, s_.hidden(), 1}); }
  TensorView LogSums() { return View(log_sums_, {s_.samples, s_.heads, s_.length, 1}); }
};

TEST_P(AttentionTest, AgreesWithTheReference) {
  ASSERT_TRUE(CausalAttention(Qkv(qkv_), Out(out_), LogSums()).ok());
  ExpectNear(out_, reference::CausalAttention(s_, Wide(qkv_)));
}

TEST_P(AttentionTest, GradientIsTheCentralDifference) {
  ASSERT_TRUE(CausalAttention(Qkv(qkv_), Out(out_), LogSums()).ok());
  Floats dout = Normal(std::ssize(out_), random_);
  Floats dqkv = Poison(qkv_.size());
  ASSERT_TRUE(CausalAttentionBackward(Qkv(qkv_), Out(out_), LogSums(), Out(dout), Qkv(dqkv)).ok());
  const auto objective = [&](const Doubles& qkv) {
    const Doubles out = reference::CausalAttention(s_, qkv);
    double sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      sum += dout[i] * out[i];
    }
    return sum;
  };
  for (const float gradient : dqkv) {
    ASSERT_TRUE(std::isfinite(gradient));
  }
  const Doubles at = Wide(qkv_);
  for (int trial = 0; trial < 60; ++trial) {
    const std::size_t i = random_.Below(qkv_.size());
    const double expected = Derivative(objective, at, i);
    ASSERT_NEAR(dqkv[i], expected, kTolerance * std::max(1.0, std::abs(expected)))
        << "element " << i;
  }
}

TEST_P(AttentionTest, GivesTheSameBitsOnTwoThreads) {
  CpuDevice device({.threads = 2});
  Floats again = Poison(out_.size());
  TensorView qkv = Qkv(qkv_);
  TensorView sums = LogSums();
  TensorView out = Out(again);
  for (TensorView* view : {&qkv, &sums, &out}) {
    view->device = &device;
  }
  ASSERT_TRUE(CausalAttention(Qkv(qkv_), Out(out_), LogSums()).ok());
  ASSERT_TRUE(CausalAttention(qkv, out, sums).ok());
  EXPECT_EQ(again, out_);
}

INSTANTIATE_TEST_SUITE_P(Shapes, AttentionTest,
                         testing::Values(reference::Sequences{1, 1, 1, 4},
                                         reference::Sequences{2, 7, 3, 5},
                                         reference::Sequences{1, 64, 2, 8},
                                         reference::Sequences{1, 65, 1, 3},
                                         reference::Sequences{2, 130, 2, 8}));

TEST(SoftmaxCrossEntropy, WithoutATargetCountsNowhere) {
  Random random(5);
  Floats logits = Normal(4 * 6, random);
  std::vector<std::int32_t> labels{2, kNoTarget, 5, kNoTarget};
  Floats gradient = Poison(logits.size());
  const auto loss = SoftmaxCrossEntropy(View(logits, {4, 6, 1, 1}), HostView(std::span(labels)),
                                        /*scale=*/1.0F, View(gradient, {4, 6, 1, 1}));
  ASSERT_TRUE(loss.ok());
  EXPECT_EQ(loss->targets, 2);
  EXPECT_NEAR(loss->loss, reference::CrossEntropy(Wide(logits), labels), 1e-6);
  const auto objective = [&](const Doubles& at) { return reference::CrossEntropy(at, labels); };
  for (std::size_t i = 0; i < logits.size(); ++i) {
    ASSERT_NEAR(gradient[i], Derivative(objective, Wide(logits), i), 1e-6) << "element " << i;
  }
}

TEST(SumOfSquares, IsInDoublePrecision) {
  Floats x(1'000'001, 1.0F);  // above 2^24, float32 adds no ones
  x[0] = 1e4F;
  const auto sum = SumOfSquares(HostView(std::span(x)));
  ASSERT_TRUE(sum.ok());
  EXPECT_EQ(*sum, 1e8 + 1'000'000);
}

}  // namespace
}  // namespace ranklab::compute
