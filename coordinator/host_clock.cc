#include "coordinator/host_clock.h"

#include <filesystem>
#include <fstream>
#include <system_error>

namespace ranklab::coordinator {
namespace {

// "<the kernel's boot> <a namespace of this process>".
std::string BootAndNamespace(const char* namespace_link, bool may_be_missing) {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::error_code error;
  const std::filesystem::path id = std::filesystem::read_symlink(namespace_link, error);
  const bool missing = error == std::errc::no_such_file_or_directory;
  if (boot.empty() || (error && !(missing && may_be_missing))) {
    return "";
  }
  return boot + " " + id.string();
}

}  // namespace

std::string HostClock() {
  // A kernel older than time namespaces (5.6) has one clock for all.
  return BootAndNamespace("/proc/self/ns/time", /*may_be_missing=*/true);
}

std::string HostLoopback() {
  return BootAndNamespace("/proc/self/ns/net", /*may_be_missing=*/false);
}

}  // namespace ranklab::coordinator
