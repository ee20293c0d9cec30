// Constants and factors of the operations (operations.h, which says what they mean). Without
// headers of packages, so that device code includes it too.
#pragma once

#include <cstdint>

namespace ranklab::compute {

inline constexpr std::int32_t kNoTarget = -100;  // as PyTorch's ignore_index

inline constexpr float kLayerNormEpsilon = 1e-5F;  // as PyTorch's

// GELU(x) = x / (1 + exp(-kGeluScale (x + kGeluCubic x^3))), which is 0.5 x (1 + tanh(u / 2)).
inline constexpr float kGeluScale = 1.59576912F;  // 2 sqrt(2 / pi)
inline constexpr float kGeluCubic = 0.044715F;

// Of AdamWUpdate.
struct AdamWStep {
  float beta1 = 0, beta2 = 0, epsilon = 0;
  float rest1 = 0, rest2 = 0;              // 1 - beta, which float32's beta is too coarse for
  float rate = 0;                          // of this update
  float decay = 0;                         // rate x weight decay
  float correction1 = 1, correction2 = 1;  // 1 - beta^t
};

}  // namespace ranklab::compute
