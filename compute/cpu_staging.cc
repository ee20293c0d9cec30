#include "compute/cpu_staging.h"

#include "compute/cpu_convert.h"

namespace ranklab::compute {

Staging::~Staging() {
  for (const auto& [values, view] : written_) {
    Narrow(values, view.dtype, view.data, view.element_count());
  }
}

float* Staging::StandInFor(const TensorView& view) {
  memory_.push_back(
      std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(view.element_count())));
  return memory_.back().get();
}

const float* Staging::In(const TensorView& view) {
  if (!Is16Bit(view.dtype)) {
    return HostValues<float>(view).data();
  }
  float* values = StandInFor(view);
  Widen(view.data, view.dtype, values, view.element_count());
  return values;
}

float* Staging::Out(const TensorView& view) {
  if (!Is16Bit(view.dtype)) {
    return HostValues<float>(view).data();
  }
  written_.emplace_back(StandInFor(view), view);
  return memory_.back().get();
}

float* Staging::InOut(const TensorView& view) {
  float* values = Out(view);
  if (Is16Bit(view.dtype)) {
    Widen(view.data, view.dtype, values, view.element_count());
  }
  return values;
}

}  // namespace ranklab::compute
