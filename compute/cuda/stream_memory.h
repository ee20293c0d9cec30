// Memory as work on a stream. Each returns a cudaError_t as an int, like launch.h; and like that it
// has a second implementation in the tests, on the host.
#pragma once

#include <string_view>

#include <absl/status/status.h>

#include "compute/cuda/launch.h"
#include "core/units.h"

namespace ranklab::compute::cuda {

int AllocateOn(Stream stream, Bytes size, void** memory);
int FreeOn(Stream stream, void* memory);
int ClearOn(Stream stream, void* memory, Bytes size);  // all bytes 0
// Both wait until the copy is done.
int CopyIn(Stream stream, const void* host, void* memory, Bytes size);
int CopyOut(Stream stream, const void* memory, void* host, Bytes size);

// Of such an int: "attention: an illegal memory access was encountered (cudaErrorIllegalAddress)".
// Errors: ResourceExhausted, the GPU's memory is used up; Internal, all else.
absl::Status StatusOf(int error, std::string_view what);

}  // namespace ranklab::compute::cuda
