// The dtypes of a lab, which may differ: of the computation, of the master parameters (always
// float32), of the wire.
#pragma once

#include "compute/tensor.h"
#include "experiment/lab_spec.h"

namespace ranklab::worker {

// Of weights as the passes read them, activations and their gradients: train.precision.
compute::DType StorageOf(const experiment::LabSpec& spec);

// Of gradients between processes: exchange.wire_dtype. float32 where nothing is exchanged.
compute::DType WireOf(const experiment::LabSpec& spec);

// Is the loss scaled? Wherever float16, with its narrow range, carries gradients.
bool ScalesLoss(const experiment::LabSpec& spec);

}  // namespace ranklab::worker
