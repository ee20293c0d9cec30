#pragma once

#include "compute/reducer.h"

namespace ranklab::collectives {

// Reduces at once, on the calling thread, and runs `done` before Reduce returns: a chunk is small
// beside the time its message takes. Integers wrap; bfloat16 and float16 are
// reduced in float32 and rounded. A maximum or minimum with a NaN keeps the target.
class CpuReducer final : public compute::Reducer {
 public:
  void Reduce(compute::ReduceOp op, compute::TensorView target, compute::TensorView source,
              DoneFn done) override;
};

}  // namespace ranklab::collectives
