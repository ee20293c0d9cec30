// Samples in memory as the tensors of a batch.
#pragma once

#include <cstdint>

#include "worker/dataset.h"
#include "worker/model.h"

namespace ranklab::worker {

// Samples [first, last) of `split`, in its memory. Requires: at least one.
Batch BatchOf(Split& split, std::int64_t first, std::int64_t last);

}  // namespace ranklab::worker
