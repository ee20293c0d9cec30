#include "collectives/nccl/shared_gpu.h"

#include <chrono>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <unistd.h>

#include "core/status.h"

namespace ranklab::collectives::nccl {
namespace {

// No other process's, in no container of the machine.
std::string HostOfThisProcess() {
  return absl::StrFormat("ranklab-%d-%d", getpid(),
                         std::chrono::system_clock::now().time_since_epoch().count());
}

// NCCL reads its environment once, so what a process has said first holds for its life.
absl::Status Decide(bool shared) {
  static std::mutex mutex;
  static std::optional<bool> decided;
  const std::scoped_lock lock(mutex);
  if (decided.has_value()) {
    return *decided == shared ? absl::OkStatus()
                              : FailedPrecondition(
                                    "NCCL reads its settings once, and this process has used it "
                                    "%s cluster.shared_gpu; start the workers anew",
                                    *decided ? "with" : "without");
  }
  decided = shared;
  if (shared) {
    const std::pair<const char*, std::string> settings[] = {{"NCCL_HOSTID", HostOfThisProcess()},
                                                            {"NCCL_NET", "Socket"},
                                                            {"NCCL_SOCKET_IFNAME", "lo"},
                                                            {"NCCL_P2P_DISABLE", "1"},
                                                            {"NCCL_SHM_DISABLE", "1"}};
    for (const auto& [name, value] : settings) {
      setenv(name, value.c_str(), /*overwrite=*/1);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ShareGpu() { return Decide(true); }
absl::Status UseGpuAlone() { return Decide(false); }

}  // namespace ranklab::collectives::nccl
