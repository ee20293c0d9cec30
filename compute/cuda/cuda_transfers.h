#pragma once

#include <memory>

#include "compute/cuda/cuda_device.h"
#include "compute/host_transfers.h"

namespace ranklab::compute::cuda {

// Downloads on the device's communication stream, uploads on its compute stream.
std::unique_ptr<HostTransfers> MakeCudaTransfers(CudaDevice& device);

}  // namespace ranklab::compute::cuda
