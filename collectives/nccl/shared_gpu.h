// Several ranks on one GPU, which NCCL refuses as a mistake, and which is one but for the trying
// out of correctness, aborts and recovery on a machine with a single GPU.
#pragma once

#include <absl/status/status.h>

namespace ranklab::collectives::nccl {

// Makes NCCL take each process for a host of its own, and sockets on loopback for the network
// between them: neither peer access nor shared memory is tried. In the process's environment, which
// NCCL reads once: before the first call of NCCL, while no other thread changes it. Times are of
// time slices and sockets, and say nothing about NCCL.
// Errors: FailedPrecondition, this process has used NCCL with its GPU alone.
// Source: NVIDIA, NCCL 2.28 documentation, "Environment variables": NCCL_HOSTID and the others.
absl::Status ShareGpu();

// This process uses NCCL, and its GPU alone. Errors: FailedPrecondition, ShareGpu was called.
absl::Status UseGpuAlone();

}  // namespace ranklab::collectives::nccl
