#include "worker/precision.h"

#include <string_view>
#include <variant>

#include "core/check.h"

namespace ranklab::worker {

using compute::DType;

namespace {

DType DTypeOf(std::string_view name) {
  if (name == "fp32") {
    return DType::kFloat32;
  }
  RANKLAB_CHECK(name == "bf16" || name == "fp16", "the lab reader knows the dtypes: %s", name);
  return name == "bf16" ? DType::kBFloat16 : DType::kFloat16;
}

}  // namespace

DType StorageOf(const experiment::LabSpec& spec) { return DTypeOf(spec.train.precision); }

DType WireOf(const experiment::LabSpec& spec) {
  const bool alone = std::holds_alternative<experiment::NoExchange>(spec.exchange.kind);
  return alone ? DType::kFloat32 : DTypeOf(spec.exchange.wire_dtype);
}

bool ScalesLoss(const experiment::LabSpec& spec) {
  return StorageOf(spec) == DType::kFloat16 || WireOf(spec) == DType::kFloat16;
}

}  // namespace ranklab::worker
