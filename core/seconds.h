// A duration as a number, for messages and arithmetic.
#pragma once

#include <chrono>

#include "core/units.h"

namespace ranklab {

constexpr double SecondsOf(Nanos duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace ranklab
