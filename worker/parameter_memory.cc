#include "worker/parameter_memory.h"

#include "compute/operations.h"
#include "core/status.h"

namespace ranklab::worker {

using compute::DType;
using compute::MemoryKind;
using compute::TensorView;

absl::StatusOr<ParameterMemory> ParameterMemory::Make(compute::Device& device, std::int64_t count) {
  const Bytes element = SizeOf(DType::kFloat32);
  ParameterMemory memory;
  memory.count_ = count;
  ASSIGN_OR_RETURN(memory.parameters_, device.Allocate(count * element, MemoryKind::kWeights));
  ASSIGN_OR_RETURN(memory.gradients_,
                   device.Allocate((count + kGradientTail) * element, MemoryKind::kGradients));
  RETURN_IF_ERROR(memory.ZeroGradients());
  return memory;
}

TensorView ParameterMemory::parameters() const {
  return ViewOf(*parameters_, DType::kFloat32, {count_, 1, 1, 1});
}

TensorView ParameterMemory::gradients() const {
  return ViewOf(*gradients_, DType::kFloat32, {count_, 1, 1, 1});
}

absl::Status ParameterMemory::ZeroGradients() const {
  return FillZero(ViewOf(*gradients_, DType::kFloat32, {count_ + kGradientTail, 1, 1, 1}));
}

}  // namespace ranklab::worker
