// What a launcher said to this process: torchrun, Slurm, Open MPI, PMI and Kubernetes indexed jobs
// put a process's number, how many there are and a host to meet at into the environment.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <absl/status/statusor.h>

#include "core/endpoint.h"
#include "core/units.h"

namespace ranklab::cli {

using Environment = std::function<const char*(const char* name)>;  // getenv's contract

// What the command line says of the same things. It is one voice among the others, except for the
// coordinator's address, where it is the last word.
struct LaunchFlags {
  std::optional<Role> role;  // `ranklab worker` and `ranklab ps` say it, `ranklab join` does not
  std::optional<Rank> rank;
  std::optional<int> servers;  // how many of the launched processes are parameter servers
  std::string coordinator;     // host:port; empty: not said
};

struct Launched {
  Role role = Role::kWorker;
  std::optional<Rank> rank;    // in its role; none: the coordinator decides
  std::optional<int> workers;  // launched together with this process
  std::string coordinator = "127.0.0.1:7070";
};

// Process number  RANK, SLURM_PROCID, OMPI_COMM_WORLD_RANK, PMI_RANK, PMIX_RANK,
//                 JOB_COMPLETION_INDEX; --rank
// How many        WORLD_SIZE, SLURM_NTASKS, OMPI_COMM_WORLD_SIZE, PMI_SIZE, RANKLAB_WORLD_SIZE
// Role            RANKLAB_ROLE, ROLE_NAME (torchrun --role): "worker" or "ps"; else the last
//                 RANKLAB_SERVERS (or --servers) of the processes are the parameter servers
// Coordinator     --coordinator; RANKLAB_COORDINATOR (host:port); port 7070 at MASTER_ADDR, or at
//                 SLURM_LAUNCH_NODE_IPADDR, where srun was called
//
// torchrun and mpirun number their own processes; inside a Slurm or Kubernetes job the job's
// numbers are then those of the launcher, and are not asked. MASTER_PORT is torchrun's own store
// and is not asked either.
//
// Errors: InvalidArgument, a value that is none of its kind, or two that disagree, by name
// ("RANK=1 but SLURM_PROCID=0").
absl::StatusOr<Launched> ReadLaunchEnvironment(const LaunchFlags& flags,
                                               const Environment& environment);

}  // namespace ranklab::cli
