// 16-bit storage and the loss scale that fp16 needs.
#include <cmath>
#include <cstdint>
#include <numeric>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "compute/cpu_gemm.h"
#include "compute/device.h"
#include "compute/loss_scale.h"
#include "compute/operations.h"
#include "core/random.h"

namespace ranklab::compute {
namespace {

std::vector<float> Normal(std::int64_t count, Random& random) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) {
    value = static_cast<float>(random.Normal());
  }
  return values;
}

TensorView View(std::vector<float>& values, std::int64_t rows, std::int64_t columns) {
  return Reshape(HostView(std::span(values)), {rows, columns, 1, 1});
}

TensorView View(std::vector<std::uint16_t>& values, DType dtype, std::int64_t rows,
                std::int64_t columns) {
  return {reinterpret_cast<std::byte*>(values.data()), dtype, {rows, columns, 1, 1}, nullptr};
}

// To 16 bits and back.
std::vector<float> Rounded(std::vector<float> values, DType dtype) {
  std::vector<std::uint16_t> narrow(values.size());
  const auto n = std::ssize(values);
  EXPECT_TRUE(Convert(View(values, 1, n), View(narrow, dtype, 1, n)).ok());
  EXPECT_TRUE(Convert(View(narrow, dtype, 1, n), View(values, 1, n)).ok());
  return values;
}

float Rounded(float value, DType dtype) { return Rounded(std::vector{value}, dtype).front(); }

TEST(Convert, HasTheKnownValuesOfBFloat16) {
  constexpr DType kDType = DType::kBFloat16;
  EXPECT_EQ(Rounded(1.001F, kDType), 1.0F) << "8 significant bits";
  EXPECT_EQ(Rounded(1.00390625F, kDType), 1.0F) << "halfway, to even";
  EXPECT_EQ(Rounded(1.01171875F, kDType), 1.015625F) << "halfway, to even";
  EXPECT_NEAR(Rounded(1e38F, kDType), 1e38F, 1e38F / 256) << "the range of float32";
  EXPECT_EQ(Rounded(-INFINITY, kDType), -INFINITY);
  EXPECT_TRUE(std::isnan(Rounded(NAN, kDType)));
}

TEST(Convert, HasTheKnownValuesOfFloat16) {
  constexpr DType kDType = DType::kFloat16;
  EXPECT_EQ(Rounded(65504.0F, kDType), 65504.0F) << "the largest";
  EXPECT_EQ(Rounded(65519.0F, kDType), 65504.0F);
  EXPECT_EQ(Rounded(65520.0F, kDType), INFINITY);
  EXPECT_EQ(Rounded(-1e30F, kDType), -INFINITY);
  EXPECT_EQ(Rounded(6.103515625e-05F, kDType), 6.103515625e-05F) << "the smallest normal one";
  EXPECT_EQ(Rounded(5.9604645e-08F, kDType), 5.9604645e-08F) << "the smallest of all";
  EXPECT_EQ(Rounded(2e-08F, kDType), 0.0F);
  EXPECT_EQ(Rounded(1.0F + 1.0F / 2048, kDType), 1.0F) << "halfway, to even";
  EXPECT_EQ(Rounded(1.0F + 3.0F / 2048, kDType), 1.0F + 4.0F / 2048) << "halfway, to even";
  EXPECT_TRUE(std::isnan(Rounded(NAN, kDType)));
}

// By the definition of IEEE 754 binary16: sign, 5 bits of exponent, 10 of fraction.
TEST(Convert, ReadsAndWritesEveryFloat16) {
  std::vector<std::uint16_t> all(1 << 16);
  std::iota(all.begin(), all.end(), 0);
  std::vector<float> wide(all.size());
  const auto n = std::ssize(all);
  ASSERT_TRUE(Convert(View(all, DType::kFloat16, 1, n), View(wide, 1, n)).ok());
  for (std::size_t bits = 0; bits < all.size(); ++bits) {
    const int exponent = static_cast<int>(bits >> 10) & 31;
    const int fraction = static_cast<int>(bits) & 1023;
    if (exponent == 31) {
      ASSERT_EQ(fraction == 0, std::isinf(wide[bits])) << bits;
      ASSERT_EQ(fraction != 0, std::isnan(wide[bits])) << bits;
      continue;
    }
    const float magnitude = exponent == 0
                                ? std::ldexp(static_cast<float>(fraction), -24)
                                : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
    ASSERT_EQ(wide[bits], bits < 0x8000 ? magnitude : -magnitude) << bits;
  }
  std::vector<std::uint16_t> back(all.size());
  ASSERT_TRUE(Convert(View(wide, 1, n), View(back, DType::kFloat16, 1, n)).ok());
  for (std::size_t bits = 0; bits < all.size(); ++bits) {
    if (!std::isnan(wide[bits])) {
      ASSERT_EQ(back[bits], all[bits]);
    }
  }
}

TEST(Convert, RoundsToTheNearestOfBothNeighbours) {
  Random random(3);
  for (const auto& [dtype, bits] : {std::pair{DType::kBFloat16, 8}, {DType::kFloat16, 11}}) {
    const std::vector<float> values = Normal(10'000, random);
    const std::vector<float> rounded = Rounded(values, dtype);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float unit = std::exp2(std::floor(std::log2(std::abs(values[i]))) + 1 - bits);
      ASSERT_LE(std::abs(rounded[i] - values[i]), std::max(unit / 2, 3e-8F)) << values[i];
      ASSERT_EQ(Rounded(rounded[i], dtype), rounded[i]);
    }
  }
}

class StagedTest : public testing::TestWithParam<DType> {};

// Sums are of the rounded operands, in float32, and rounded once; a processor's own products of
// bfloat16 may add in another order.
TEST_P(StagedTest, AProductIsRoundedOnce) {
  Random random(5);
  std::vector<float> a = Rounded(Normal(6 * 40, random), GetParam());
  std::vector<float> b = Rounded(Normal(40 * 3, random), GetParam());
  std::vector<float> exact(6 * 3);
  ASSERT_TRUE(MatMul(View(a, 6, 40), Transpose::kNo, View(b, 40, 3), Transpose::kNo, 0.0F,
                     View(exact, 6, 3))
                  .ok());
  std::vector<std::uint16_t> a16(a.size());
  std::vector<std::uint16_t> b16(b.size());
  std::vector<std::uint16_t> c16(exact.size());
  const TensorView narrow_a = View(a16, GetParam(), 6, 40);
  const TensorView narrow_b = View(b16, GetParam(), 40, 3);
  const TensorView narrow_c = View(c16, GetParam(), 6, 3);
  ASSERT_TRUE(Convert(View(a, 6, 40), narrow_a).ok());
  ASSERT_TRUE(Convert(View(b, 40, 3), narrow_b).ok());
  ASSERT_TRUE(MatMul(narrow_a, Transpose::kNo, narrow_b, Transpose::kNo, 0.0F, narrow_c).ok());
  std::vector<float> found(exact.size());
  ASSERT_TRUE(Convert(narrow_c, View(found, 6, 3)).ok());
  if (GetParam() == DType::kFloat16 || !MultipliesBFloat16()) {
    EXPECT_EQ(found, Rounded(exact, GetParam()));
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], exact[i], std::max(std::abs(exact[i]) / 100, 1e-3F));
  }
}

// As weight gradients are: 16-bit operands into float32.
TEST_P(StagedTest, AProductOf16BitsAddsToFloat32Unrounded) {
  std::vector<float> one{1.0F};
  std::vector<std::uint16_t> one16(1);
  const TensorView narrow = View(one16, GetParam(), 1, 1);
  ASSERT_TRUE(Convert(View(one, 1, 1), narrow).ok());
  std::vector<float> sum{4096.0F};
  ASSERT_TRUE(MatMul(narrow, Transpose::kYes, narrow, Transpose::kNo, 1.0F, View(sum, 1, 1)).ok());
  EXPECT_EQ(sum[0], 4097.0F);
}

// What multiplies bfloat16 where the processor can, here in float32, which every one can:
// transposed or not, added or not, whole or in parts.
TEST(MixedGemm, IsGemm) {
  Random random(7);
  std::vector<float> a = Normal(5 * 7, random);
  std::vector<float> b = Normal(7 * 11, random);
  const std::vector<float> before = Normal(5 * 11, random);
  for (const auto& [flip_a, flip_b, beta] :
       {std::tuple{false, false, 0.0F}, {true, false, 1.0F}, {false, true, 1.0F}}) {
    std::vector<float> expected = before;
    std::vector<float> found = before;
    const MatMulShape shape{.m = 5, .k = 7, .n = 11, .transpose_a = flip_a, .transpose_b = flip_b};
    const std::int64_t stride_a = flip_a ? 5 : 7;
    const std::int64_t stride_b = flip_b ? 7 : 11;
    ASSERT_TRUE(Gemm({5, 7, 11}, {a.data(), stride_a, flip_a}, {b.data(), stride_b, flip_b}, beta,
                     expected.data(), 11)
                    .ok());
    for (int part = 0; part < 2; ++part) {
      const GemmPart cut = CutGemm(shape, part, 2);
      const auto at = [](float* values) { return reinterpret_cast<std::byte*>(values); };
      ASSERT_TRUE(MixedGemm(cut.shape,
                            {.data = at(a.data() + cut.a), .stride = stride_a, .transpose = flip_a},
                            {.data = at(b.data() + cut.b), .stride = stride_b, .transpose = flip_b},
                            beta, {.data = at(found.data() + cut.c), .stride = 11})
                      .ok());
    }
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i], expected[i], 1e-5F) << "element " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, StagedTest, testing::Values(DType::kBFloat16, DType::kFloat16));

// A gradient of 100 in fp16: 7 skipped steps, then 512 x 100 fits.
TEST(LossScale, HalvesUntilTheLargestGradientFits) {
  LossScale scale(/*dynamic=*/true);
  EXPECT_EQ(scale.value(), 65536);
  for (int step = 0; step < 100; ++step) {
    const float scaled = static_cast<float>(scale.value()) * 100.0F;
    scale.Update(std::isinf(Rounded(scaled, DType::kFloat16)));
  }
  EXPECT_EQ(scale.skipped(), 7);
  EXPECT_EQ(scale.value(), 512);
}

TEST(LossScale, DoublesAfterTwoThousandCleanStepsInARow) {
  LossScale scale(/*dynamic=*/true);
  for (int step = 0; step < 1999; ++step) {
    scale.Update(false);
  }
  EXPECT_EQ(scale.value(), 65536);
  scale.Update(true);
  for (int step = 0; step < 1999; ++step) {
    scale.Update(false);
  }
  EXPECT_EQ(scale.value(), 32768);
  scale.Update(false);
  EXPECT_EQ(scale.value(), 65536);
  EXPECT_EQ(scale.skipped(), 1);
}

TEST(LossScale, IsOneForOtherPrecisions) {
  LossScale scale(/*dynamic=*/false);
  scale.Update(true);
  EXPECT_EQ(scale.value(), 1);
  EXPECT_EQ(scale.skipped(), 0);
}

}  // namespace
}  // namespace ranklab::compute
