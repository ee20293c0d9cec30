#include "cli/matrix_rate.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "compute/operations.h"
#include "core/random.h"
#include "core/status.h"

namespace ranklab::cli {
namespace {

using compute::DType;
using compute::TensorView;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kSizeOnGpu = 8192;
constexpr std::int64_t kSizeOnCpu = 1024;
constexpr int kMeasurements = 5;
// A measurement is as many products as take this long.
constexpr double kLeastSeconds = 0.05;

// A square matrix of values in (-1, 1): products of zeros need less power, and a GPU's clock shows
// it.
absl::StatusOr<std::unique_ptr<compute::Buffer>> RandomMatrix(compute::Device& device, DType dtype,
                                                              std::int64_t size) {
  ASSIGN_OR_RETURN(auto wide, device.Allocate(size * size * compute::SizeOf(DType::kFloat32),
                                              compute::MemoryKind::kData));
  std::vector<float> values(static_cast<std::size_t>(size * size));
  Random random(17);
  for (float& value : values) {
    value = static_cast<float>(2 * random.Uniform() - 1);
  }
  const TensorView view = ViewOf(*wide, DType::kFloat32, {size * size, 1, 1, 1});
  RETURN_IF_ERROR(CopyFromHost(compute::HostView(values), view));
  if (dtype == DType::kFloat32) {
    return wide;
  }
  ASSIGN_OR_RETURN(auto narrow, device.Allocate(size * size * compute::SizeOf(dtype),
                                                compute::MemoryKind::kData));
  RETURN_IF_ERROR(Convert(view, ViewOf(*narrow, dtype, {size * size, 1, 1, 1})));
  RETURN_IF_ERROR(device.Synchronize());
  return narrow;
}

}  // namespace

absl::StatusOr<MatrixRate> MeasureMatrixRate(compute::Device& device, DType dtype) {
  const std::int64_t size = device.name() == "cpu" ? kSizeOnCpu : kSizeOnGpu;
  ASSIGN_OR_RETURN(const auto a, RandomMatrix(device, dtype, size));
  ASSIGN_OR_RETURN(const auto b, RandomMatrix(device, dtype, size));
  ASSIGN_OR_RETURN(const auto c, RandomMatrix(device, dtype, size));
  const auto seconds_of = [&](int times) -> absl::StatusOr<double> {
    const auto begins = Clock::now();
    for (int i = 0; i < times; ++i) {
      RETURN_IF_ERROR(MatMul(ViewOf(*a, dtype, {size, size, 1, 1}), compute::Transpose::kNo,
                             ViewOf(*b, dtype, {size, size, 1, 1}), compute::Transpose::kNo, 0.0F,
                             ViewOf(*c, dtype, {size, size, 1, 1})));
    }
    RETURN_IF_ERROR(device.Synchronize());
    return std::chrono::duration<double>(Clock::now() - begins).count();
  };
  RETURN_IF_ERROR(seconds_of(1).status());  // pays for what is made on first use
  ASSIGN_OR_RETURN(const double once, seconds_of(1));
  const int times = std::clamp(static_cast<int>(kLeastSeconds / std::max(once, 1e-6)), 1, 1000);
  std::vector<double> rates;
  for (int i = 0; i < kMeasurements; ++i) {
    ASSIGN_OR_RETURN(const double seconds, seconds_of(times));
    rates.push_back(compute::CostOfMatMul(size, size, size).flops * times / seconds);
  }
  std::sort(rates.begin(), rates.end());
  return MatrixRate{.flops = rates[kMeasurements / 2], .size = size};
}

}  // namespace ranklab::cli
