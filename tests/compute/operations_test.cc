// Every operation against a plain loop in double precision. Inputs are uniform in [-1, 1).
#include "compute/operations.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compute/device.h"
#include "core/random.h"

namespace ranklab::compute {
namespace {

constexpr double kEpsilon = std::numeric_limits<float>::epsilon();

std::vector<float> Uniform(std::int64_t count, Random& random) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) {
    value = static_cast<float>(2.0 * random.Uniform() - 1.0);
  }
  return values;
}

TensorView Matrix(std::vector<float>& values, std::int64_t rows, std::int64_t columns) {
  return Reshape(HostView(std::span(values)), {rows, columns, 1, 1});
}

class MatMulTest : public testing::TestWithParam<std::tuple<int, int, int>> {};

TEST_P(MatMulTest, AgreesWithDoubleLoopsForEveryTransposeAndBeta) {
  const auto [m, k, n] = GetParam();
  Random random(static_cast<std::uint64_t>(m * 10000 + k * 100 + n));
  for (const bool flip_a : {false, true}) {
    for (const bool flip_b : {false, true}) {
      for (const float beta : {0.0F, 1.0F}) {
        std::vector<float> a = Uniform(m * k, random);
        std::vector<float> b = Uniform(k * n, random);
        std::vector<float> c = Uniform(m * n, random);
        const std::vector<float> before = c;
        ASSERT_TRUE(MatMul(flip_a ? Matrix(a, k, m) : Matrix(a, m, k),
                           flip_a ? Transpose::kYes : Transpose::kNo,
                           flip_b ? Matrix(b, n, k) : Matrix(b, k, n),
                           flip_b ? Transpose::kYes : Transpose::kNo, beta, Matrix(c, m, n))
                        .ok());
        for (int i = 0; i < m; ++i) {
          for (int j = 0; j < n; ++j) {
            double sum = static_cast<double>(beta) * before[i * n + j];
            double magnitude = std::abs(sum);
            for (int l = 0; l < k; ++l) {
              const double product = static_cast<double>(a[flip_a ? l * m + i : i * k + l]) *
                                     b[flip_b ? j * k + l : l * n + j];
              sum += product;
              magnitude += std::abs(product);
            }
            // Any order of k + 1 additions: Higham, "Accuracy and Stability of Numerical
            // Algorithms", section 3.1.
            ASSERT_NEAR(c[i * n + j], sum, (k + 2) * kEpsilon * magnitude)
                << "c(" << i << ", " << j << ") flip_a " << flip_a << " flip_b " << flip_b;
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OddShapes, MatMulTest,
                         testing::Combine(testing::Values(1, 3, 7, 17, 65),
                                          testing::Values(1, 3, 7, 17, 65),
                                          testing::Values(1, 3, 7, 17, 65)));

// Rows a multiple of 4 KiB apart, which are copied first; the last two in blocks of k.
INSTANTIATE_TEST_SUITE_P(CollidingRows, MatMulTest,
                         testing::Values(std::tuple(1024, 5, 3), std::tuple(3, 5, 1024),
                                         std::tuple(1024, 3, 1024), std::tuple(2048, 1030, 2),
                                         std::tuple(2, 1030, 2048)));

TEST(MatMul, WithBetaZeroDoesNotReadTheResult) {
  std::vector<float> a{1, 2};
  std::vector<float> b{3, 4};
  std::vector<float> c{NAN};
  ASSERT_TRUE(MatMul(Matrix(a, 1, 2), Transpose::kNo, Matrix(b, 2, 1), Transpose::kNo, 0.0F,
                     Matrix(c, 1, 1))
                  .ok());
  EXPECT_EQ(c[0], 11.0F);
}

// Threads of this process, from the kernel.
int CountThreads() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == "Threads:") {
      int count = 0;
      status >> count;
      return count;
    }
  }
  return -1;
}

// m, n: which side is cut among the threads.
class ThreadsTest : public testing::TestWithParam<std::tuple<int, int, Transpose, Transpose>> {};

TEST_P(ThreadsTest, AreAsManyAsAskedForAndAgreeWithOne) {
  const auto [m, n, flip_a, flip_b] = GetParam();
  constexpr int kDepth = 300;
  constexpr int kThreads = 3;
  ASSERT_GE(m * n * kDepth, kThreads << 20) << "too small to be cut";
  Random random(5);
  std::vector<float> a = Uniform(m * kDepth, random);
  std::vector<float> b = Uniform(n * kDepth, random);
  const int before = CountThreads();
  const auto product = [&](int threads) {
    CpuDevice device({.threads = threads});
    const auto on_device = [&](std::vector<float>& values, int rows, int columns) {
      TensorView view = Matrix(values, rows, columns);
      view.device = &device;
      return view;
    };
    std::vector<float> c(m * n);
    EXPECT_TRUE(
        MatMul(flip_a == Transpose::kYes ? on_device(a, kDepth, m) : on_device(a, m, kDepth),
               flip_a,
               flip_b == Transpose::kYes ? on_device(b, n, kDepth) : on_device(b, kDepth, n),
               flip_b, 0.0F, on_device(c, m, n))
            .ok());
    EXPECT_EQ(CountThreads(), before + threads - 1);
    return c;
  };
  const std::vector<float> one = product(1);
  const std::vector<float> three = product(kThreads);
  for (std::size_t i = 0; i < one.size(); ++i) {
    ASSERT_NEAR(three[i], one[i], kDepth * kEpsilon * kDepth) << i;
  }
  EXPECT_EQ(product(kThreads), three) << "the same bits each time";
}

INSTANTIATE_TEST_SUITE_P(MatMul, ThreadsTest,
                         testing::Combine(testing::Values(131, 307), testing::Values(129, 311),
                                          testing::Values(Transpose::kNo, Transpose::kYes),
                                          testing::Values(Transpose::kNo, Transpose::kYes)));

TEST(MatMul, ShapesThatDoNotFitAreAnError) {
  std::vector<float> a(6), b(6), c(4);
  EXPECT_DEATH(MatMul(Matrix(a, 2, 3), Transpose::kNo, Matrix(b, 2, 3), Transpose::kNo, 0.0F,
                      Matrix(c, 2, 2))
                   .IgnoreError(),
               "op\\(2, 3\\) x op\\(2, 3\\) is not \\(2, 2\\)");
}

// (rows, n)
class RowsTest : public testing::TestWithParam<std::tuple<int, int>> {
 protected:
  const int rows_ = std::get<0>(GetParam());
  const int n_ = std::get<1>(GetParam());
  Random random_{static_cast<std::uint64_t>(rows_ * 100 + n_)};
};

TEST_P(RowsTest, AddBiasWithAndWithoutRelu) {
  for (const bool relu : {false, true}) {
    std::vector<float> x = Uniform(rows_ * n_, random_);
    std::vector<float> bias = Uniform(n_, random_);
    const std::vector<float> before = x;
    const TensorView view = Matrix(x, rows_, n_);
    const TensorView bias_view = HostView(std::span(bias));
    ASSERT_TRUE((relu ? AddBiasRelu(view, bias_view) : AddBias(view, bias_view)).ok());
    for (int i = 0; i < rows_ * n_; ++i) {
      const double sum = static_cast<double>(before[i]) + bias[i % n_];
      ASSERT_NEAR(x[i], relu ? std::max(0.0, sum) : sum, 2 * kEpsilon) << i;
    }
  }
}

TEST_P(RowsTest, ReluBackwardLetsThroughWhereTheOutputIsPositive) {
  std::vector<float> y = Uniform(rows_ * n_, random_);
  for (float& value : y) {
    value = std::max(value, 0.0F);
  }
  std::vector<float> dy = Uniform(rows_ * n_, random_);
  const std::vector<float> before = dy;
  ASSERT_TRUE(ReluBackward(Matrix(y, rows_, n_), Matrix(dy, rows_, n_)).ok());
  for (int i = 0; i < rows_ * n_; ++i) {
    ASSERT_EQ(dy[i], y[i] > 0.0F ? before[i] : 0.0F) << i;
  }
}

TEST_P(RowsTest, AccumulateRowSumsAddsToWhatIsThere) {
  std::vector<float> x = Uniform(rows_ * n_, random_);
  std::vector<float> out = Uniform(n_, random_);
  const std::vector<float> before = out;
  ASSERT_TRUE(AccumulateRowSums(Matrix(x, rows_, n_), HostView(std::span(out))).ok());
  for (int column = 0; column < n_; ++column) {
    double sum = before[column];
    for (int row = 0; row < rows_; ++row) {
      sum += x[row * n_ + column];
    }
    ASSERT_NEAR(out[column], sum, (rows_ + 1.0) * (rows_ + 1.0) * kEpsilon) << column;
  }
}

TEST_P(RowsTest, SoftmaxCrossEntropyAgreesWithItsDefinition) {
  std::vector<float> logits = Uniform(rows_ * n_, random_);
  std::vector<float> gradient(logits.size(), NAN);
  std::vector<std::int32_t> labels;
  for (int row = 0; row < rows_; ++row) {
    labels.push_back(static_cast<std::int32_t>(random_.Below(n_)));
  }
  const auto sum = SoftmaxCrossEntropy(Matrix(logits, rows_, n_), HostView(std::span(labels)),
                                       /*scale=*/1.0F, Matrix(gradient, rows_, n_));
  ASSERT_TRUE(sum.ok()) << sum.status();
  double loss = 0;
  std::int64_t correct = 0;
  for (int row = 0; row < rows_; ++row) {
    double total = 0;
    int best = 0;
    for (int c = 0; c < n_; ++c) {
      total += std::exp(static_cast<double>(logits[row * n_ + c]));
      best = logits[row * n_ + c] > logits[row * n_ + best] ? c : best;
    }
    loss -= std::log(std::exp(static_cast<double>(logits[row * n_ + labels[row]])) / total);
    correct += best == labels[row] ? 1 : 0;
    for (int c = 0; c < n_; ++c) {
      const double expected =
          std::exp(static_cast<double>(logits[row * n_ + c])) / total - (c == labels[row] ? 1 : 0);
      ASSERT_NEAR(gradient[row * n_ + c], expected, 8 * kEpsilon) << row << ", " << c;
    }
  }
  EXPECT_NEAR(sum->loss, loss, 4 * kEpsilon * rows_);
  EXPECT_EQ(sum->correct, correct);
}

INSTANTIATE_TEST_SUITE_P(OddShapes, RowsTest,
                         testing::Combine(testing::Values(1, 3, 7, 17, 65),
                                          testing::Values(1, 3, 7, 17, 65)));

TEST(SoftmaxCrossEntropy, SurvivesLogitsWhoseExponentialsOverflow) {
  std::vector<float> logits{1000.0F, 0.0F, -1000.0F};
  std::vector<float> gradient(3);
  std::vector<std::int32_t> labels{1};
  const auto sum = SoftmaxCrossEntropy(Matrix(logits, 1, 3), HostView(std::span(labels)),
                                       /*scale=*/1.0F, Matrix(gradient, 1, 3));
  ASSERT_TRUE(sum.ok());
  EXPECT_DOUBLE_EQ(sum->loss, 1000.0);
  EXPECT_THAT(gradient, testing::ElementsAre(1.0F, -1.0F, 0.0F));
}

TEST(SoftmaxCrossEntropy, ShowsDivergence) {
  std::vector<float> logits{NAN, 0.0F};
  std::vector<float> gradient(2);
  std::vector<std::int32_t> labels{1};
  const auto sum = SoftmaxCrossEntropy(Matrix(logits, 1, 2), HostView(std::span(labels)),
                                       /*scale=*/1.0F, Matrix(gradient, 1, 2));
  ASSERT_TRUE(sum.ok());
  EXPECT_TRUE(std::isnan(sum->loss));
}

TEST(SoftmaxCrossEntropy, RefusesALabelThatIsNoClass) {
  std::vector<float> logits(6);
  std::vector<float> gradient(6);
  for (const std::int32_t label : {-1, 3}) {
    std::vector<std::int32_t> labels{0, label};
    const auto sum = SoftmaxCrossEntropy(Matrix(logits, 2, 3), HostView(std::span(labels)),
                                         /*scale=*/1.0F, Matrix(gradient, 2, 3));
    EXPECT_EQ(sum.status().code(), absl::StatusCode::kInvalidArgument) << label;
  }
}

TEST(AddBiasRelu, KeepsNaNSoThatDivergenceShows) {
  std::vector<float> x{NAN};
  std::vector<float> bias{1.0F};
  ASSERT_TRUE(AddBiasRelu(Matrix(x, 1, 1), HostView(std::span(bias))).ok());
  EXPECT_TRUE(std::isnan(x[0]));
}

TEST(Copies, MoveBytesBothWays) {
  CpuDevice device({});
  auto buffer = device.Allocate(12, MemoryKind::kData);
  ASSERT_TRUE(buffer.ok());
  const TensorView on_device = ViewOf(**buffer, DType::kFloat32, {3, 1, 1, 1});
  std::vector<float> in{1, 2, 3};
  std::vector<float> out(3);
  ASSERT_TRUE(CopyFromHost(HostView(std::span(in)), on_device).ok());
  ASSERT_TRUE(CopyToHost(on_device, HostView(std::span(out))).ok());
  EXPECT_EQ(out, in);
  ASSERT_TRUE(FillZero(on_device).ok());
  EXPECT_THAT(HostValues<float>(on_device), testing::Each(0.0F));
}

TEST(Costs, CountFlopsAndBytes) {
  EXPECT_EQ(CostOfMatMul(2, 3, 5).flops, 60);
  EXPECT_EQ(CostOfMatMul(2, 3, 5).bytes, 4 * (6 + 15 + 10));
  EXPECT_EQ(CostOfElementwise(7, 2, 1).flops, 7);
  EXPECT_EQ(CostOfElementwise(7, 2, 1).bytes, 4 * 7 * 3);
}

}  // namespace
}  // namespace ranklab::compute
