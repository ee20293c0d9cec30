#include "worker/utilization.h"

#include <variant>

#include <absl/strings/str_format.h>

#include "core/check.h"
#include "core/overloaded.h"
#include "fabric/device_model.h"
#include "worker/gpt_layout.h"
#include "worker/precision.h"

namespace ranklab::worker {
namespace {

using experiment::LabSpec;
using experiment::WorkRecord;

WorkRecord WorkOfMlp(const experiment::MlpSpec& mlp) {
  WorkRecord work;
  for (std::size_t i = 1; i < mlp.layers.size(); ++i) {
    work.parameters += (std::int64_t{mlp.layers[i - 1]} + 1) * mlp.layers[i];
  }
  work.model_flops = work.hardware_flops = 6.0 * static_cast<double>(work.parameters);
  work.formula = absl::StrFormat("6 N FLOPs a sample, N = %d", work.parameters);
  return work;
}

WorkRecord WorkOfGpt(const LabSpec& spec, const experiment::GptSpec& gpt) {
  WorkRecord work;
  work.parameters =
      GptLayout({.spec = gpt, .vocabulary = spec.data.Vocabulary()}).parameter_count();
  work.tokens = gpt.context;
  const double blocks = gpt.layers;
  const double width = gpt.hidden;
  const double length = gpt.context;
  const double attention = 12 * blocks * width * length;
  const double again =
      spec.train.recompute ? blocks * (16 * width * width + 4 * width * length) : 0;
  work.model_flops = length * (6 * static_cast<double>(work.parameters) + attention);
  work.hardware_flops = work.model_flops + length * again;
  work.formula = absl::StrFormat(
      "6 N + 12 L d s FLOPs a token, N = %d with embeddings, L = %d, d = %d, s = %d, attention "
      "counted whole",
      work.parameters, gpt.layers, gpt.hidden, gpt.context);
  if (again > 0) {
    work.formula += "; HFU adds L (16 d^2 + 4 d s) for what the backward pass computes again";
  }
  return work;
}

}  // namespace

WorkRecord WorkOf(const LabSpec& spec) {
  WorkRecord work = std::visit(
      Overloaded{[](const experiment::MlpSpec& mlp) { return WorkOfMlp(mlp); },
                 [&spec](const experiment::GptSpec& gpt) { return WorkOfGpt(spec, gpt); }},
      spec.model);
  if (spec.compute.native()) {
    work.peak = absl::StrFormat(
        "each rank's best product of two %s matrices of 256 x 256, measured, %d thread%s",
        spec.train.precision, spec.compute.threads, spec.compute.threads == 1 ? "" : "s");
    return work;
  }
  const auto device = fabric::FindDeviceModel(spec.compute.model);
  RANKLAB_CHECK(device.ok(), "the lab reader knows the device models: %s", spec.compute.model);
  const bool full = StorageOf(spec) == compute::DType::kFloat32;
  work.peak_flops = full ? device->fp32_peak : device->bf16_peak;
  work.peak = absl::StrFormat("%s, %s, nominal and dense: %.1f TFLOP/s", device->words,
                              full ? "fp32" : "bf16", work.peak_flops / 1e12);
  return work;
}

}  // namespace ranklab::worker
