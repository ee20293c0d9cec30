// What a run's seed is split into, so that no two uses of chance share numbers.
#pragma once

#include <cstdint>

#include "core/random.h"

namespace ranklab::worker {

// Part of what a seed means: numbers are never reused for something else.
enum class Stream : std::uint64_t {
  kInitialWeights = 1,  // split again by layer
  kSampleOrder = 2,     // split again by epoch
  kDataSplit = 3,       // of DataSpec::split_seed
  kTeacher = 4,         // likewise
  kInputs = 5,          // likewise
};

inline Random StreamOf(std::uint64_t seed, Stream stream) {
  return Random(seed).Split(static_cast<std::uint64_t>(stream));
}

}  // namespace ranklab::worker
