// The loss scale of fp16 training: gradients are computed of scale x loss, so that small ones do
// not vanish in 16 bits, and divided by it again in the update.
#pragma once

#include <cstdint>

namespace ranklab::compute {

// Halves at an overflow, doubles after kCleanSteps steps without one. Pure. Source: Micikevicius et
// al., "Mixed precision training", ICLR 2018; constants as PyTorch's GradScaler.
class LossScale {
 public:
  static constexpr double kInitial = 65536;
  static constexpr std::int64_t kCleanSteps = 2000;

  // Without `dynamic`, always 1: other precisions have the range of fp32.
  explicit LossScale(bool dynamic) : dynamic_(dynamic), value_(dynamic ? kInitial : 1.0) {}

  bool dynamic() const { return dynamic_; }
  double value() const { return value_; }
  std::int64_t skipped() const { return skipped_; }

  // A step is over. `overflow`: some rank's gradients were not finite, and all skipped the update.
  void Update(bool overflow) {
    if (!dynamic_) {
      return;
    }
    clean_ = overflow ? 0 : clean_ + 1;
    if (overflow) {
      value_ /= 2;
      ++skipped_;
    } else if (clean_ == kCleanSteps) {
      value_ *= 2;
      clean_ = 0;
    }
  }

 private:
  bool dynamic_;
  double value_;
  std::int64_t clean_ = 0;
  std::int64_t skipped_ = 0;
};

}  // namespace ranklab::compute
