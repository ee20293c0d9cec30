// Every operation against plain loops in double precision: random inputs, outputs that begin as NaN
// where the operation promises to overwrite them, all dtypes, addresses and widths that vectors of
// four fit and do not fit.
#include <algorithm>
#include <functional>
#include <numeric>

#include <gmock/gmock.h>

#include "tests/compute/cuda/tensors_on_device.h"
#include "tests/compute/reference_gradients.h"

namespace ranklab::compute::cuda {
namespace {

constexpr DType kFloat = DType::kFloat32;

struct Layout {
  DType dtype;
  std::int64_t rows, n;
  std::int64_t begin;  // elements that the tensors begin behind an aligned address

  friend void PrintTo(const Layout& layout, std::ostream* out) {
    *out << "dtype " << static_cast<int>(layout.dtype) << " (" << layout.rows << ", " << layout.n
         << ") at " << layout.begin;
  }
};

std::vector<Layout> Layouts() {
  std::vector<Layout> layouts;
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    for (const auto& [rows, n, begin] :
         {std::tuple{1, 1, 0}, {3, 37, 0}, {70, 264, 0}, {5, 64, 1}, {2, 520, 4}}) {
      layouts.push_back({dtype, rows, n, begin});
    }
  }
  return layouts;
}

class RowsOnDevice : public OnDevice, public testing::WithParamInterface<Layout> {
 protected:
  const Layout layout_ = GetParam();
  Tensor Rows() { return Normal({layout_.rows, layout_.n, 1, 1}, layout_.dtype, layout_.begin); }
  Tensor PoisonedRows() {
    return Poisoned({layout_.rows, layout_.n, 1, 1}, layout_.dtype, layout_.begin);
  }
  Tensor Row(DType dtype) { return Normal({layout_.n, 1, 1, 1}, dtype, layout_.begin); }

  // f(element, column) over x.
  Doubles Mapped(const Doubles& x, const std::function<double(std::size_t, std::size_t)>& f) {
    Doubles result(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      result[i] = f(i, i % static_cast<std::size_t>(layout_.n));
    }
    return result;
  }
};
INSTANTIATE_TEST_SUITE_P(Layouts, RowsOnDevice, testing::ValuesIn(Layouts()));

TEST_P(RowsOnDevice, AddBias) {
  for (const bool relu : {false, true}) {
    const Tensor x = Rows();
    const Tensor bias = Row(layout_.dtype);
    const Doubles before = Back(x);
    const Doubles b = Back(bias);
    ASSERT_TRUE((relu ? AddBiasRelu(x.view, bias.view) : AddBias(x.view, bias.view)).ok());
    ExpectHolds(x, Mapped(before, [&](std::size_t i, std::size_t column) {
                  const double sum = before[i] + b[column];
                  return relu ? std::max(0.0, sum) : sum;
                }));
  }
}

TEST_P(RowsOnDevice, AddBiasGelu) {
  const Tensor x = Rows();
  const Tensor bias = Row(layout_.dtype);
  const Tensor y = PoisonedRows();
  const Doubles before = Back(x);
  const Doubles b = Back(bias);
  ASSERT_TRUE(compute::AddBiasGelu(x.view, bias.view, y.view).ok());
  const auto sum = [&](std::size_t i, std::size_t column) { return before[i] + b[column]; };
  ExpectHolds(x, Mapped(before, sum));
  ExpectHolds(y, Mapped(before, [&](std::size_t i, std::size_t column) {
                return reference::Gelu(sum(i, column));
              }));
}

TEST_P(RowsOnDevice, AddBiasResidual) {
  const Tensor x = Rows();
  const Tensor bias = Row(layout_.dtype);
  const Tensor residual = Rows();
  const Doubles before = Back(x);
  const Doubles b = Back(bias);
  const Doubles r = Back(residual);
  ASSERT_TRUE(compute::AddBiasResidual(x.view, bias.view, residual.view).ok());
  ExpectHolds(x, Mapped(before, [&](std::size_t i, std::size_t column) {
                return before[i] + b[column] + r[i];
              }));
}

TEST_P(RowsOnDevice, ReluAndGeluBackward) {
  for (const bool gelu : {false, true}) {
    const Tensor x = Rows();
    const Tensor dy = Rows();
    const Doubles inputs = Back(x);
    const Doubles before = Back(dy);
    ASSERT_TRUE(
        (gelu ? compute::GeluBackward(x.view, dy.view) : compute::ReluBackward(x.view, dy.view))
            .ok());
    ExpectHolds(dy, Mapped(before, [&](std::size_t i, std::size_t) {
                  const double slope =
                      gelu ? reference::GeluSlope(inputs[i]) : (inputs[i] > 0 ? 1.0 : 0.0);
                  return before[i] * slope;
                }));
  }
}

TEST_P(RowsOnDevice, AccumulateRowSums) {
  const Tensor x = Rows();
  const Tensor out = Row(kFloat);
  Doubles expected = Back(out);
  const Doubles values = Back(x);
  for (std::size_t i = 0; i < values.size(); ++i) {
    expected[i % expected.size()] += values[i];
  }
  ASSERT_TRUE(compute::AccumulateRowSums(x.view, out.view).ok());
  ExpectHolds(out, expected);
}

TEST_P(RowsOnDevice, LayerNorm) {
  const Tensor x = Rows();
  const Tensor gain = Row(layout_.dtype);
  const Tensor bias = Row(layout_.dtype);
  const Tensor y = PoisonedRows();
  const Tensor statistics = Poisoned({layout_.rows, 2, 1, 1}, kFloat);
  ASSERT_TRUE(compute::LayerNorm(x.view, gain.view, bias.view, y.view, statistics.view).ok());
  ExpectHolds(y, reference::LayerNorm(Back(x), Back(gain), Back(bias)));
}

TEST_P(RowsOnDevice, LayerNormBackward) {
  const Tensor x = Rows();
  const Tensor gain = Row(layout_.dtype);
  const Tensor bias = Row(layout_.dtype);
  const Tensor y = PoisonedRows();
  const Tensor dy = Rows();
  const Tensor statistics = Poisoned({layout_.rows, 2, 1, 1}, kFloat);
  ASSERT_TRUE(compute::LayerNorm(x.view, gain.view, bias.view, y.view, statistics.view).ok());
  const reference::NormGradients expected =
      reference::LayerNormBackward(Back(x), Back(gain), Back(dy));
  for (const float beta : {0.0F, 0.5F}) {
    const Tensor dx = beta == 0.0F ? PoisonedRows() : Rows();
    const Tensor dgain = Row(kFloat);
    const Tensor dbias = Row(kFloat);
    const Doubles before = beta == 0.0F ? Doubles(expected.dx.size()) : Back(dx);
    Doubles gains = Back(dgain);
    Doubles biases = Back(dbias);
    ASSERT_TRUE(compute::LayerNormBackward(
                    x.view, gain.view, statistics.view, dy.view,
                    {.dx = dx.view, .beta = beta, .dgain = dgain.view, .dbias = dbias.view})
                    .ok());
    ExpectHolds(dx, Mapped(before, [&](std::size_t i, std::size_t) {
                  return beta * before[i] + expected.dx[i];
                }));
    for (std::size_t i = 0; i < gains.size(); ++i) {
      gains[i] += expected.dgain[i];
      biases[i] += expected.dbias[i];
    }
    ExpectHolds(dgain, gains);
    ExpectHolds(dbias, biases);
  }
}

TEST_P(RowsOnDevice, SoftmaxCrossEntropy) {
  const Tensor logits = Rows();
  const Tensor gradient = PoisonedRows();
  std::vector<std::int32_t> labels;
  for (std::int64_t row = 0; row < layout_.rows; ++row) {
    labels.push_back(row % 3 == 2 ? kNoTarget
                                  : static_cast<std::int32_t>(random_.Below(layout_.n)));
  }
  const Tensor on_device = Integers(labels, {layout_.rows, 1, 1, 1});
  constexpr float kScale = 3;
  const auto loss =
      compute::SoftmaxCrossEntropy(logits.view, on_device.view, kScale, gradient.view);
  ASSERT_TRUE(loss.ok()) << MessageOf(loss.status());
  const Doubles x = Back(logits);
  EXPECT_NEAR(loss->loss, reference::CrossEntropy(x, labels),
              1e-5 * static_cast<double>(layout_.rows));
  Doubles expected(x.size(), 0.0);
  std::int64_t correct = 0;
  std::int64_t targets = 0;
  for (std::int64_t row = 0; row < layout_.rows; ++row) {
    const auto first = x.begin() + row * layout_.n;
    const auto last = first + layout_.n;
    if (labels[row] == kNoTarget) {
      continue;
    }
    ++targets;
    correct += std::max_element(first, last) - first == labels[row] ? 1 : 0;
    const double sum = std::accumulate(
        first, last, 0.0, [](double all, double logit) { return all + std::exp(logit); });
    for (std::int64_t i = 0; i < layout_.n; ++i) {
      expected[row * layout_.n + i] = kScale * (std::exp(first[i]) / sum - (i == labels[row]));
    }
  }
  EXPECT_EQ(loss->correct, correct);
  EXPECT_EQ(loss->targets, targets);
  ExpectHolds(gradient, expected);
}

TEST_P(RowsOnDevice, ConvertFromAndToFloat32) {
  const Tensor narrow = Rows();
  const Tensor wide = Poisoned({layout_.rows, layout_.n, 1, 1}, kFloat, layout_.begin);
  ASSERT_TRUE(compute::Convert(narrow.view, wide.view).ok());
  EXPECT_EQ(Back(wide), Back(narrow));
  const Tensor back = PoisonedRows();
  ASSERT_TRUE(compute::Convert(wide.view, back.view).ok());
  EXPECT_EQ(Back(back), Back(narrow));
}

TEST_P(RowsOnDevice, FillZero) {
  const Tensor x = PoisonedRows();
  ASSERT_TRUE(compute::FillZero(x.view).ok());
  EXPECT_THAT(Back(x), testing::Each(0.0));
}

TEST_P(RowsOnDevice, Embedding) {
  constexpr std::int64_t kVocabulary = 5;
  constexpr std::int64_t kSamples = 2;
  const std::int64_t length = layout_.rows;
  const std::int64_t hidden = layout_.n;
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < kSamples * length; ++i) {
    tokens.push_back(static_cast<std::int32_t>(random_.Below(kVocabulary)));
  }
  const Tensor ids = Integers(tokens, {kSamples, length, 1, 1});
  const Tensor table = Normal({kVocabulary, hidden, 1, 1}, layout_.dtype, layout_.begin);
  const Tensor positions = Normal({length + 1, hidden, 1, 1}, layout_.dtype);
  const Tensor out = Poisoned({kSamples * length, hidden, 1, 1}, layout_.dtype);
  ASSERT_TRUE(compute::EmbedTokens(ids.view, table.view, positions.view, out.view).ok());
  const Tensor dout = Normal(out.view.shape, layout_.dtype);
  const Tensor dtable = Normal(table.view.shape, kFloat);
  const Tensor dpositions = Normal(positions.view.shape, kFloat);
  Doubles expected(kSamples * length * hidden);
  Doubles of_table = Back(dtable);
  Doubles of_positions = Back(dpositions);
  const Doubles rows = Back(table);
  const Doubles places = Back(positions);
  const Doubles gradients = Back(dout);
  for (std::int64_t i = 0; i < std::ssize(expected); ++i) {
    const std::int64_t row = i / hidden;
    const std::int64_t of_token = tokens[row] * hidden + i % hidden;
    const std::int64_t of_place = row % length * hidden + i % hidden;
    expected[i] = rows[of_token] + places[of_place];
    of_table[of_token] += gradients[i];
    of_positions[of_place] += gradients[i];
  }
  ExpectHolds(out, expected);
  ASSERT_TRUE(compute::EmbedTokensBackward(ids.view, dout.view, dtable.view, dpositions.view).ok());
  ExpectHolds(dtable, of_table);
  ExpectHolds(dpositions, of_positions);
}

using RefusedOnDevice = OnDevice;

TEST_F(RefusedOnDevice, ALabelThatIsNoClass) {
  const Tensor logits = Normal({4, 6, 1, 1}, kFloat);
  const Tensor gradient = Poisoned({4, 6, 1, 1}, kFloat);
  const Tensor labels = Integers({0, 5, 6, -1}, {4, 1, 1, 1});
  const auto loss = compute::SoftmaxCrossEntropy(logits.view, labels.view, 1, gradient.view);
  ASSERT_EQ(loss.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(loss.status()), testing::HasSubstr("label 6 of row 2 is not one of 6"));
}

TEST_F(RefusedOnDevice, ATokenOutsideTheTable) {
  const Tensor tokens = Integers({0, 1, 2, 3, 1, 0}, {2, 3, 1, 1});
  const Tensor table = Normal({3, 4, 1, 1}, kFloat);
  const Tensor positions = Normal({3, 4, 1, 1}, kFloat);
  const Tensor out = Poisoned({6, 4, 1, 1}, kFloat);
  const absl::Status status =
      compute::EmbedTokens(tokens.view, table.view, positions.view, out.view);
  ASSERT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(status), testing::HasSubstr("token 3 of sample 1 is not one of 3"));
}

class FlatOnDevice : public OnDevice, public testing::WithParamInterface<std::int64_t> {
 protected:
  Tensor Flat() { return Normal({GetParam(), 1, 1, 1}, kFloat); }
};
INSTANTIATE_TEST_SUITE_P(Counts, FlatOnDevice, testing::Values(1, 5, 1024, 5003));

TEST_P(FlatOnDevice, SumOfSquaresIsInDoublePrecision) {
  const Tensor x = Flat();
  const Doubles values = Back(x);
  const double expected = std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
  const auto sum = compute::SumOfSquares(x.view);
  ASSERT_TRUE(sum.ok());
  EXPECT_NEAR(*sum, expected, 1e-12 * expected);
}

TEST_P(FlatOnDevice, SumOfSquaresShowsAnInfinityAnywhere) {
  for (const std::int64_t place : {std::int64_t{0}, GetParam() / 2, GetParam() - 1}) {
    std::vector<float> values(static_cast<std::size_t>(GetParam()), 1e30F);
    values[static_cast<std::size_t>(place)] = INFINITY;
    const auto sum = compute::SumOfSquares(Holding(values, {GetParam(), 1, 1, 1}, kFloat).view);
    ASSERT_TRUE(sum.ok());
    EXPECT_FALSE(std::isfinite(*sum));
  }
}

TEST_P(FlatOnDevice, Updates) {
  const Tensor p = Flat();
  const Tensor g = Flat();
  const Tensor velocity = Flat();
  const Doubles gradients = Back(g);
  Doubles parameters = Back(p);
  Doubles velocities = Back(velocity);
  ASSERT_TRUE(compute::SgdUpdate(p.view, g.view, 0.5F, 0.1F).ok());
  ASSERT_TRUE(compute::MomentumUpdate(p.view, g.view, velocity.view, 0.5F, 0.1F, 0.9F).ok());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    parameters[i] -= 0.1 * 0.5 * gradients[i];
    velocities[i] = 0.9 * velocities[i] + 0.5 * gradients[i];
    parameters[i] -= 0.1 * velocities[i];
  }
  ExpectHolds(p, parameters);
  ExpectHolds(velocity, velocities);
}

TEST_P(FlatOnDevice, AdamW) {
  const AdamWStep step{.beta1 = 0.9F,
                       .beta2 = 0.99F,
                       .epsilon = 1e-8F,
                       .rest1 = 0.1F,
                       .rest2 = 0.01F,
                       .rate = 0.01F,
                       .decay = 0.001F,
                       .correction1 = 0.19F,
                       .correction2 = 0.0199F};
  const Tensor p = Flat();
  const Tensor g = Flat();
  const Tensor m = Flat();
  const Tensor v = Holding(std::vector<float>(static_cast<std::size_t>(GetParam()), 0.25F),
                           {GetParam(), 1, 1, 1}, kFloat);
  const Doubles gradients = Back(g);
  Doubles parameters = Back(p);
  Doubles first = Back(m);
  Doubles second = Back(v);
  ASSERT_TRUE(compute::AdamWUpdate(p.view, g.view, m.view, v.view, 2.0F, step).ok());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const double gradient = 2 * gradients[i];
    first[i] = 0.9 * first[i] + 0.1 * gradient;
    second[i] = 0.99 * second[i] + 0.01 * gradient * gradient;
    parameters[i] =
        0.999 * parameters[i] - 0.01 * (first[i] / 0.19) / (std::sqrt(second[i] / 0.0199) + 1e-8);
  }
  ExpectHolds(p, parameters);
  ExpectHolds(m, first);
  ExpectHolds(v, second);
}

struct Product {
  DType factors, result;
  bool flip_a, flip_b;
  float beta;
};

class ProductsOnDevice : public OnDevice, public testing::WithParamInterface<Product> {};

std::vector<Product> Products() {
  std::vector<Product> products;
  for (const auto& [factors, result] : {std::pair{kFloat, kFloat},
                                        {DType::kBFloat16, DType::kBFloat16},
                                        {DType::kBFloat16, kFloat},
                                        {DType::kFloat16, DType::kFloat16},
                                        {DType::kFloat16, kFloat}}) {
    for (const auto& [flip_a, flip_b, beta] :
         {std::tuple{false, false, 0.0F}, {false, true, 0.0F}, {true, false, 1.0F}}) {
      products.push_back({factors, result, flip_a, flip_b, beta});
    }
  }
  return products;
}
INSTANTIATE_TEST_SUITE_P(Products, ProductsOnDevice, testing::ValuesIn(Products()));

TEST_P(ProductsOnDevice, MatMul) {
  const auto& [factors, result, flip_a, flip_b, beta] = GetParam();
  // Multiples of 16 at aligned addresses; neither.
  for (const auto& [m, k, n, begin] : {std::tuple{64, 48, 32, 0}, {5, 37, 11, 1}}) {
    const Tensor a =
        flip_a ? Normal({k, m, 1, 1}, factors, begin) : Normal({m, k, 1, 1}, factors, begin);
    const Tensor b =
        flip_b ? Normal({n, k, 1, 1}, factors, begin) : Normal({k, n, 1, 1}, factors, begin);
    const Tensor c =
        beta == 0 ? Poisoned({m, n, 1, 1}, result, begin) : Normal({m, n, 1, 1}, result, begin);
    Doubles expected = beta == 0 ? Doubles(static_cast<std::size_t>(m) * n) : Back(c);
    const Doubles left = Back(a);
    const Doubles right = Back(b);
    for (int row = 0; row < m; ++row) {
      for (int column = 0; column < n; ++column) {
        for (int i = 0; i < k; ++i) {
          expected[row * n + column] += left[flip_a ? i * m + row : row * k + i] *
                                        right[flip_b ? column * k + i : i * n + column];
        }
      }
    }
    const absl::Status status =
        compute::MatMul(a.view, flip_a ? Transpose::kYes : Transpose::kNo, b.view,
                        flip_b ? Transpose::kYes : Transpose::kNo, beta, c.view);
    ASSERT_TRUE(status.ok()) << MessageOf(status);
    ExpectHolds(c, expected);
  }
}

struct AttentionCase {
  reference::Sequences sequences;
  DType dtype;
};

class AttentionOnDevice : public OnDevice, public testing::WithParamInterface<AttentionCase> {};

// Lengths and widths around the tiles of 32; tiles that all keys, some, and none are seen of.
std::vector<AttentionCase> AttentionCases() {
  std::vector<AttentionCase> cases;
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    for (const reference::Sequences& s :
         {reference::Sequences{1, 1, 1, 4}, reference::Sequences{2, 7, 3, 5},
          reference::Sequences{1, 32, 2, 32}, reference::Sequences{1, 33, 1, 33},
          reference::Sequences{2, 100, 2, 64}}) {
      cases.push_back({s, dtype});
    }
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Shapes, AttentionOnDevice, testing::ValuesIn(AttentionCases()));

TEST_P(AttentionOnDevice, ForwardAndBackward) {
  const auto& [s, dtype] = GetParam();
  const Shape wide{s.samples, s.length, 3 * s.hidden(), 1};
  const Shape narrow{s.samples, s.length, s.hidden(), 1};
  const Tensor qkv = Normal(wide, dtype);
  const Tensor out = Poisoned(narrow, dtype);
  const Tensor log_sums = Poisoned({s.samples, s.heads, s.length, 1}, kFloat);
  ASSERT_TRUE(compute::CausalAttention(qkv.view, out.view, log_sums.view).ok());
  ExpectHolds(out, reference::CausalAttention(s, Back(qkv)));

  const Tensor dout = Normal(narrow, dtype);
  const Tensor dqkv = Poisoned(wide, dtype);
  ASSERT_TRUE(
      compute::CausalAttentionBackward(qkv.view, out.view, log_sums.view, dout.view, dqkv.view)
          .ok());
  ExpectHolds(dqkv, reference::CausalAttentionBackward(s, Back(qkv), Back(out), Back(dout)));
}

}  // namespace
}  // namespace ranklab::compute::cuda
