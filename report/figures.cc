#include "report/figures.h"

#include <cmath>

#include <absl/strings/str_format.h>

namespace ranklab::report {
namespace {

// Three digits that count, without an exponent.
std::string ThreeDigits(double value) {
  const double size = std::abs(value);
  return absl::StrFormat("%.*f", size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2, value);
}

}  // namespace

std::string PrintSeconds(double seconds) {
  if (!(seconds > 0)) {
    return "-";
  }
  if (seconds < 999.5e-9) {
    return ThreeDigits(seconds * 1e9) + " ns";
  }
  if (seconds < 999.5e-6) {
    return ThreeDigits(seconds * 1e6) + " us";
  }
  if (seconds < 999.5e-3) {
    return ThreeDigits(seconds * 1e3) + " ms";
  }
  return ThreeDigits(seconds) + " s";
}

std::string PrintRate(double per_second) {
  if (!(per_second > 0) || !std::isfinite(per_second)) {
    return "-";
  }
  if (per_second < 99.95) {
    return ThreeDigits(per_second);
  }
  // More digits than three would claim a precision that no run has.
  const double step = std::pow(10.0, std::floor(std::log10(per_second)) - 2);
  std::string digits = absl::StrFormat("%.0f", std::round(per_second / step) * step);
  for (std::size_t at = digits.size(); at > 3; at -= 3) {
    digits.insert(at - 3, ",");
  }
  return digits;
}

std::string PrintShare(double share) { return share > 0 ? absl::StrFormat("%.2f", share) : "-"; }

std::string PrintLoss(double loss) {
  return std::isfinite(loss) ? absl::StrFormat("%.4f", loss) : "diverged";
}

std::string PrintFactor(double factor) { return ThreeDigits(factor); }

}  // namespace ranklab::report
