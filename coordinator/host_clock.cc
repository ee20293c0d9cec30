#include "coordinator/host_clock.h"

#include <filesystem>
#include <fstream>
#include <system_error>

namespace ranklab::coordinator {

std::string HostClock() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::error_code error;
  const std::filesystem::path time_namespace =
      std::filesystem::read_symlink("/proc/self/ns/time", error);
  // A kernel older than time namespaces (5.6) has one clock for all.
  const bool before_namespaces = error == std::errc::no_such_file_or_directory;
  if (boot.empty() || (error && !before_namespaces)) {
    return "";
  }
  return boot + " " + time_namespace.string();
}

}  // namespace ranklab::coordinator
