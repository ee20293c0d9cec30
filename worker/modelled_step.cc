#include "worker/modelled_step.h"

#include <limits>

#include "core/status.h"
#include "fabric/presets.h"
#include "worker/precision.h"

namespace ranklab::worker {

absl::StatusOr<DeviceStep> DeviceStep::Make(const experiment::LabSpec& spec, const Model& model) {
  DeviceStep step(model);
  step.native_ = spec.compute.native();
  step.update_ = WorkerUpdateOf(spec);
  step.storage_ = StorageOf(spec);
  step.overhead_ = spec.compute.op_overhead;
  if (!step.native_) {
    ASSIGN_OR_RETURN(step.device_, fabric::FindDeviceModel(spec.compute.model));
  }
  return step;
}

const LayerTimes& DeviceStep::For(std::int64_t samples) {
  const auto found = known_.find(samples);
  if (found != known_.end()) {
    return found->second;
  }
  LayerTimes times;
  const auto layers = static_cast<std::size_t>(model_->layer_count());
  if (native_ || samples == 0) {
    times.forward.resize(layers);
    times.backward.resize(layers);
  } else {
    times = ModelledTimes(*model_, device_, overhead_,
                          {.samples = samples, .storage = storage_, .update = update_});
  }
  return known_.emplace(samples, std::move(times)).first->second;
}

absl::StatusOr<fabric::LinkSpec> PortOf(const experiment::FabricSpec& fabric, double time_scale) {
  if (fabric.native()) {
    fabric::LinkSpec unlimited;
    unlimited.bandwidth.bytes_per_second = std::numeric_limits<double>::infinity();
    return unlimited;
  }
  ASSIGN_OR_RETURN(const fabric::Preset preset, fabric::FindPreset(fabric.preset));
  return fabric::Dilate(preset.port, time_scale);
}

}  // namespace ranklab::worker
