#include "worker/matrix_rate.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "compute/operations.h"
#include "core/status.h"

namespace ranklab::worker {

absl::StatusOr<double> MeasureMatrixRate(compute::Device& device, compute::DType dtype,
                                         const EventLoop& clock) {
  // Each product is shorter than what a scheduler gives at a time, so that on a shared core too one
  // of them runs undisturbed.
  constexpr std::int64_t kSide = 256;
  constexpr int kRounds = 40;
  constexpr int kSmallNumber = 0x3c;  // repeated, a number of about 0.01 or 1 in every dtype
  std::array<std::unique_ptr<compute::Buffer>, 3> buffers;
  std::array<compute::TensorView, 3> matrices;
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const Bytes size = kSide * kSide * SizeOf(dtype);
    ASSIGN_OR_RETURN(buffers[i], device.Allocate(size, compute::MemoryKind::kActivations));
    std::memset(buffers[i]->data(), kSmallNumber, static_cast<std::size_t>(size));
    matrices[i] = {.data = buffers[i]->data(),
                   .dtype = dtype,
                   .shape = {kSide, kSide, 1, 1},
                   .device = &device};
  }
  Nanos least = Nanos::max();
  for (int round = 0; round < kRounds; ++round) {
    const Nanos begins = clock.Now();
    RETURN_IF_ERROR(compute::MatMul(matrices[0], compute::Transpose::kNo, matrices[1],
                                    compute::Transpose::kNo, /*beta=*/0, matrices[2]));
    RETURN_IF_ERROR(device.Synchronize());
    least = std::min(least, clock.Now() - begins);
  }
  constexpr double kFlops = 2.0 * kSide * kSide * kSide;
  return kFlops / std::chrono::duration<double>(std::max(least, Nanos(1))).count();
}

}  // namespace ranklab::worker
