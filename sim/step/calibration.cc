#include "sim/step/calibration.h"

namespace ranklab::sim {
namespace {

constexpr double kAchievedByA100 = 271.2 / 312;

// Five numbers, fitted by least mean absolute error on A100 rows: of arXiv 2205.05198, table 5, the
// four rows of 22B and 530B; of SC 2021, table 1, 1.7B, 7.5B and 145.6B; of vTrain's table the rows
// whose number is 1 more than a multiple of 4, and row 40. A sixth, inside_efficiency, is the
// measured all-reduce of 1 GiB in a node of 8 A100 (8193 us, vTrain's NCCL table) over 300 GB/s.
// Everything else that is compared with the model is prediction.
constexpr Calibration kA100 = {.matrix_efficiency = 0.76,
                               .memory_efficiency = 0.675,
                               .kernel_seconds = 10.7e-6,
                               .inner_half = 40,
                               .inside_efficiency = 0.764,
                               .between_efficiency = 0.886,
                               .collective_seconds = 20e-6,
                               .overlap_slowdown = 0.10,
                               .update_bytes = 50};

}  // namespace

Calibration CalibrationOf(const Accelerator& accelerator) {
  Calibration calibration = kA100;
  if (accelerator.achieved_flops > 0) {
    calibration.matrix_efficiency *=
        accelerator.achieved_flops / accelerator.tensor_flops / kAchievedByA100;
  }
  return calibration;
}

}  // namespace ranklab::sim
