// A model as a list of layers whose forward and backward passes are called one by one, so that each
// can be held to its modelled time and its gradients begun as soon as they are there.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/statusor.h>

#include "compute/device.h"
#include "compute/operations.h"
#include "compute/tensor.h"
#include "experiment/lab_spec.h"
#include "fabric/device_model.h"
#include "worker/lab_optimizer.h"
#include "worker/parameter_memory.h"
#include "worker/train_state.h"

namespace ranklab::worker {

// Views of host memory (device nullptr), whatever the model's device: it makes its own copy.
struct Batch {
  compute::TensorView inputs;  // (samples, inputs), float32; of gpt (samples, context), int32
  compute::TensorView labels;  // (samples), int32; of gpt (samples, context)
};

struct LayerCost {
  std::vector<fabric::Operation> forward;
  std::vector<fabric::Operation> backward;
};

// Parameters and gradients are two flat float32 buffers, layer after layer; a layer's part is
// [ParameterBegin(l), ParameterBegin(l + 1)).
class Model {
 public:
  virtual ~Model() = default;

  virtual int layer_count() const = 0;
  virtual std::int64_t max_samples() const = 0;  // of one batch
  virtual std::int64_t parameter_count() const = 0;
  virtual std::int64_t ParameterBegin(int layer) const = 0;  // also of layer_count(): the end

  virtual compute::TensorView parameters() = 0;  // (parameter_count)
  virtual compute::TensorView gradients() = 0;   // (parameter_count), then kGradientTail floats
  virtual std::vector<NamedTensor> NamedParameters() = 0;

  // The same values for the same seed on every rank and machine.
  virtual absl::Status Initialize(std::uint64_t seed) = 0;

  // Before the first micro-batch of a step; of the tail too.
  virtual absl::Status ZeroGradients() = 0;

  // Requires: 1 to max_samples samples, the same batch up to its BackwardLayer(0), which must stay
  // valid until then. Layers in order 0 .. layer_count() - 1. Layer 0 allocates what a batch larger
  // than all before it needs. Errors: ResourceExhausted.
  virtual absl::Status ForwardLayer(int layer, const Batch& batch) = 0;

  // After the last ForwardLayer: sums over the batch's targets, and the gradient of scale x the
  // sum. Without a backward pass after it: an evaluation. Errors: InvalidArgument, a label that is
  // no class.
  virtual absl::StatusOr<compute::LossSum> Loss(const Batch& batch, float scale) = 0;

  // In order layer_count() - 1 .. 0. Adds to the gradients (sums over targets); after it the
  // layer's part of gradients() is complete for this micro-batch.
  virtual absl::Status BackwardLayer(int layer, const Batch& batch) = 0;

  // For the modelled time of a micro-batch of `samples`. The loss counts with the last layer.
  virtual LayerCost CostOf(int layer, std::int64_t samples) const = 0;
};

// Allocates on `device`, which must outlive it, for micro-batches of at most `max_samples`.
// Requires: max_samples >= 1. The parameters are undefined until Initialize.
// `inputs` and `classes` are the data's; of tokens the context and the vocabulary.
// Errors: InvalidArgument, a model that does not fit the data; ResourceExhausted.
absl::StatusOr<std::unique_ptr<Model>> MakeModel(const experiment::LabSpec& spec,
                                                 compute::Device& device, std::int64_t max_samples,
                                                 int inputs, int classes);

// Of `max_samples` samples as `spec` alone tells their shape, without its data. Requires: a lab
// whose model and data fit, as the reader checks. Errors: as MakeModel.
absl::StatusOr<std::unique_ptr<Model>> MakeModel(const experiment::LabSpec& spec,
                                                 compute::Device& device, std::int64_t max_samples);

// Modelled times of each layer's passes, the sums over its operations, and of the optimizer.
struct LayerTimes {
  std::vector<Nanos> forward;   // [layer]
  std::vector<Nanos> backward;  // [layer]
  Nanos optimizer{};
};

// Of a micro-batch, and of what follows the last one.
struct StepShape {
  std::int64_t samples = 0;
  compute::DType storage = compute::DType::kFloat32;
  WorkerUpdate update{};
};

// With a storage of 16 bits an operation moves half the bytes, products run at the device's bf16
// rate, and each layer's forward pass begins by rounding its parameters.
LayerTimes ModelledTimes(const Model& model, const fabric::DeviceModel& device, Nanos op_overhead,
                         const StepShape& shape);

}  // namespace ranklab::worker
