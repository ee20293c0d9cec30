// The rank that a launcher gave this process: torchrun, Slurm, Open MPI, PMI and Kubernetes indexed
// jobs say it in the environment.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <absl/status/statusor.h>

#include "core/units.h"

namespace ranklab::cli {

using Environment = std::function<const char*(const char* name)>;  // getenv's contract

// `flag` is what the command line says. Variables: RANK, SLURM_PROCID, OMPI_COMM_WORLD_RANK,
// PMI_RANK, PMIX_RANK, JOB_COMPLETION_INDEX. None of them: no wish, the coordinator decides.
// Errors: InvalidArgument, a value that is no rank, or two that disagree, both by name
// ("RANK=1 but SLURM_PROCID=0").
absl::StatusOr<std::optional<Rank>> WantedRank(std::optional<Rank> flag,
                                               const Environment& environment);

}  // namespace ranklab::cli
