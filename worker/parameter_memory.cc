#include "worker/parameter_memory.h"

#include "compute/operations.h"
#include "core/status.h"

namespace ranklab::worker {

using compute::DType;
using compute::MemoryKind;
using compute::TensorView;

absl::StatusOr<ParameterMemory> ParameterMemory::Make(compute::Device& device, std::int64_t count,
                                                      DType storage) {
  const Bytes element = SizeOf(DType::kFloat32);
  ParameterMemory memory;
  memory.count_ = count;
  memory.storage_ = storage;
  ASSIGN_OR_RETURN(memory.parameters_, device.Allocate(count * element, MemoryKind::kWeights));
  if (storage != DType::kFloat32) {
    ASSIGN_OR_RETURN(memory.rounded_,
                     device.Allocate(count * SizeOf(storage), MemoryKind::kWeights));
  }
  ASSIGN_OR_RETURN(memory.gradients_,
                   device.Allocate((count + kGradientTail) * element, MemoryKind::kGradients));
  RETURN_IF_ERROR(memory.ZeroGradients());
  return memory;
}

TensorView ParameterMemory::parameters() const { return Master(0, {count_, 1, 1, 1}); }

TensorView ParameterMemory::gradients() const { return Gradient(0, {count_, 1, 1, 1}); }

absl::Status ParameterMemory::ZeroGradients() const {
  return FillZero(Gradient(0, {count_ + kGradientTail, 1, 1, 1}));
}

absl::Status ParameterMemory::Round(std::int64_t begin, std::int64_t end) const {
  if (storage_ == DType::kFloat32) {
    return absl::OkStatus();
  }
  const Shape shape{end - begin, 1, 1, 1};
  return Convert(Master(begin, shape), Weight(begin, shape));
}

TensorView ParameterMemory::Master(std::int64_t begin, const Shape& shape) const {
  return ViewOf(*parameters_, DType::kFloat32, shape, begin);
}

TensorView ParameterMemory::Weight(std::int64_t begin, const Shape& shape) const {
  return storage_ == DType::kFloat32 ? Master(begin, shape)
                                     : ViewOf(*rounded_, storage_, shape, begin);
}

TensorView ParameterMemory::Gradient(std::int64_t begin, const Shape& shape) const {
  return ViewOf(*gradients_, DType::kFloat32, shape, begin);
}

}  // namespace ranklab::worker
