// The devices there are, by name.
#pragma once

#include <memory>
#include <string_view>

#include <absl/status/statusor.h>

#include "compute/tensor.h"

namespace ranklab::compute {

struct DeviceOptions {
  int threads = 1;    // of a CPU, for matrix work
  int place = 0;      // among the processes of one host: it takes GPU `place` modulo their number
  Bytes cap = 0;      // of all kinds of memory together; 0: none
  bool tf32 = false;  // a GPU may round the factors of float32 products to 10 bits of fraction
};

// "cpu", "cuda", or "auto": a GPU where this build and this machine can compute on one, else the
// CPU.
// Errors: Unimplemented, "cuda" in a build without it; FailedPrecondition, "cuda" on a machine
// without a GPU or its libraries; InvalidArgument, another name.
absl::StatusOr<std::unique_ptr<Device>> MakeDevice(std::string_view name,
                                                   const DeviceOptions& options);

}  // namespace ranklab::compute
