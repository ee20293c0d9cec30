// The operations of a model as kernels and matrix products on one stream. Needs no header of
// CUDA's: a test links it with launch.h and stream_memory.h on the host, and runs every kernel
// there.
#pragma once

#include <memory>
#include <string>

#include "compute/cuda/launch.h"
#include "compute/cuda/matrix_product.h"
#include "compute/operations.h"

namespace ranklab::compute::cuda {

struct OperationsOptions {
  std::string device;  // for messages: "cuda:0"
  Stream stream = nullptr;
  Bytes most_shared_memory = 0;  // of a block
};

std::unique_ptr<Operations> MakeKernelOperations(const OperationsOptions& options,
                                                 std::unique_ptr<MatrixProducts> products);

}  // namespace ranklab::compute::cuda
