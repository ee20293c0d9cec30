// Layer times of the device model for the batch sizes that come; all zero for native compute.
#pragma once

#include <map>

#include <absl/status/statusor.h>

#include "experiment/lab_spec.h"
#include "fabric/device_model.h"
#include "fabric/link_model.h"
#include "worker/lab_optimizer.h"
#include "worker/model.h"

namespace ranklab::worker {

// Modelled times by the number of samples of a micro-batch; natively all zero.
class ModelledStep {
 public:
  virtual ~ModelledStep() = default;
  virtual const LayerTimes& For(std::int64_t samples) = 0;
};

class DeviceStep final : public ModelledStep {
 public:
  // Errors: InvalidArgument, an unknown device model.
  static absl::StatusOr<DeviceStep> Make(const experiment::LabSpec& spec, const Model& model);

  const LayerTimes& For(std::int64_t samples) override;

 private:
  explicit DeviceStep(const Model& model) : model_(&model) {}

  const Model* model_;
  bool native_ = true;
  WorkerUpdate update_;
  compute::DType storage_ = compute::DType::kFloat32;
  fabric::DeviceModel device_;
  Nanos overhead_{};
  std::map<std::int64_t, LayerTimes> known_;  // by samples
};

// The modelled port of a lab's fabric, dilated; unlimited for `native`.
// Errors: InvalidArgument, an unknown preset.
absl::StatusOr<fabric::LinkSpec> PortOf(const experiment::FabricSpec& fabric, double time_scale);

}  // namespace ranklab::worker
