#pragma once

#include <memory>

#include "collectives/nccl/queues.h"
#include "compute/tensor.h"

namespace ranklab::worker {

// The streams of a GPU as NCCL's exchange orders them; null where the device is none. `device` must
// outlive them.
std::unique_ptr<collectives::nccl::Queues> QueuesOf(compute::Device& device);

}  // namespace ranklab::worker
