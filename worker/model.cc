#include "worker/model.h"

#include <utility>
#include <variant>

#include "compute/optimizer.h"
#include "core/check.h"
#include "core/overloaded.h"
#include "core/status.h"
#include "worker/gpt.h"
#include "worker/mlp.h"
#include "worker/precision.h"

namespace ranklab::worker {
namespace {

absl::Status CheckWidths(const std::vector<int>& widths, int inputs, int classes) {
  if (widths.size() < 2) {
    return InvalidArgument("model.layers has %d widths; at least two: inputs and classes",
                           widths.size());
  }
  for (const int width : widths) {
    if (width < 1) {
      return InvalidArgument("model.layers has a width of %d; at least 1", width);
    }
  }
  if (widths.front() != inputs || widths.back() != classes) {
    return InvalidArgument("model.layers goes from %d to %d; the data has %d inputs and %d classes",
                           widths.front(), widths.back(), inputs, classes);
  }
  return absl::OkStatus();
}

absl::Status CheckGpt(const experiment::GptSpec& gpt, int inputs) {
  if (gpt.layers < 1 || gpt.hidden < 1 || gpt.heads < 1 || gpt.context < 1 ||
      gpt.hidden % gpt.heads != 0) {
    return InvalidArgument("a gpt of %d layers, hidden %d, %d heads, context %d", gpt.layers,
                           gpt.hidden, gpt.heads, gpt.context);
  }
  if (gpt.context != inputs) {
    return InvalidArgument("model.context is %d; the data has sequences of %d", gpt.context,
                           inputs);
  }
  return absl::OkStatus();
}

// The same operations on 16 bits instead of 32.
std::vector<fabric::Operation> Halved(std::vector<fabric::Operation> operations) {
  for (fabric::Operation& operation : operations) {
    operation.bytes /= 2;
    operation.precision = fabric::Precision::kBf16;
  }
  return operations;
}

// Reads float32, writes 16 bits.
fabric::Operation CostOfRounding(std::int64_t elements) {
  const auto count = static_cast<double>(elements);
  return {.flops = count, .bytes = 6.0 * count};
}

Nanos SumOf(const std::vector<fabric::Operation>& operations, const fabric::DeviceModel& device,
            Nanos overhead) {
  Nanos sum{};
  for (const fabric::Operation& operation : operations) {
    sum += fabric::TimeOf(device, operation, overhead);
  }
  return sum;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> MakeModel(const experiment::LabSpec& spec,
                                                 compute::Device& device, std::int64_t max_samples,
                                                 int inputs, int classes) {
  using Result = absl::StatusOr<std::unique_ptr<Model>>;
  const bool recompute = spec.train.recompute;
  const compute::DType storage = StorageOf(spec);
  return std::visit(Overloaded{[&](const experiment::MlpSpec& mlp) -> Result {
                                 RETURN_IF_ERROR(CheckWidths(mlp.layers, inputs, classes));
                                 return Mlp::Make(mlp.layers, device, max_samples, storage);
                               },
                               [&](const experiment::GptSpec& gpt) -> Result {
                                 RETURN_IF_ERROR(CheckGpt(gpt, inputs));
                                 return Gpt::Make({.shape = {.spec = gpt, .vocabulary = classes},
                                                   .max_samples = max_samples,
                                                   .recompute = recompute,
                                                   .storage = storage},
                                                  device);
                               }},
                    spec.model);
}

absl::StatusOr<std::unique_ptr<Model>> MakeModel(const experiment::LabSpec& spec,
                                                 compute::Device& device,
                                                 std::int64_t max_samples) {
  return std::visit(
      Overloaded{[&](const experiment::MlpSpec& mlp) {
                   const bool any = !mlp.layers.empty();
                   return MakeModel(spec, device, max_samples, any ? mlp.layers.front() : 0,
                                    any ? mlp.layers.back() : 0);
                 },
                 [&](const experiment::GptSpec& gpt) {
                   return MakeModel(spec, device, max_samples, gpt.context, spec.data.Vocabulary());
                 }},
      spec.model);
}

LayerTimes ModelledTimes(const Model& model, const fabric::DeviceModel& device, Nanos op_overhead,
                         const StepShape& shape) {
  LayerTimes times;
  for (int layer = 0; layer < model.layer_count(); ++layer) {
    LayerCost cost = model.CostOf(layer, shape.samples);
    if (shape.storage != compute::DType::kFloat32) {
      cost = {.forward = Halved(std::move(cost.forward)),
              .backward = Halved(std::move(cost.backward))};
      cost.forward.push_back(
          CostOfRounding(model.ParameterBegin(layer + 1) - model.ParameterBegin(layer)));
    }
    times.forward.push_back(SumOf(cost.forward, device, op_overhead));
    times.backward.push_back(SumOf(cost.backward, device, op_overhead));
  }
  const std::int64_t parameters = model.parameter_count();
  std::vector<fabric::Operation> at_end;
  if (shape.update.clips) {
    at_end.push_back(compute::CostOfClipFactor(parameters));
  }
  if (!shape.update.optimizer.empty()) {
    at_end.push_back(compute::CostOfOptimizer(shape.update.optimizer, parameters));
  }
  times.optimizer = SumOf(at_end, device, op_overhead);
  return times;
}

}  // namespace ranklab::worker
