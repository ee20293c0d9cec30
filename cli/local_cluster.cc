#include "cli/local_cluster.h"

#include <unistd.h>

#include "core/status.h"

namespace ranklab::cli {

absl::StatusOr<std::unique_ptr<LocalCluster>> LocalCluster::Start(
    const LocalClusterOptions& options) {
  auto cluster = std::unique_ptr<LocalCluster>(new LocalCluster);
  ASSIGN_OR_RETURN(const Pipe announce, MakePipe());
  absl::Status started =
      cluster->processes_.Start({.name = "the coordinator",
                                 .arguments = {"coordinator", "--listen", "127.0.0.1:0",
                                               "--announce-fd", std::to_string(announce.write_fd)},
                                 .kept_fd = announce.write_fd});
  close(announce.write_fd);
  // The line that the coordinator writes once it listens.
  absl::StatusOr<std::string> port =
      started.ok()
          ? ReadLine(announce.read_fd, options.start_timeout, "the coordinator process to listen")
          : started;
  close(announce.read_fd);
  RETURN_IF_ERROR(port.status());
  cluster->coordinator_ = "127.0.0.1:" + *port;
  const auto start = [&](const char* role, const char* words, int count) -> absl::Status {
    for (int i = 0; i < count; ++i) {
      RETURN_IF_ERROR(cluster->processes_.Start(
          {.name = absl::StrFormat("%s process %d", words, i),
           .arguments = {role, "--coordinator", cluster->coordinator_, "--listen", "127.0.0.1:0",
                         "--rank", std::to_string(i), "--no-last-word"}}));
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(start("worker", "worker", options.workers));
  RETURN_IF_ERROR(start("ps", "server", options.servers));
  return cluster;
}

}  // namespace ranklab::cli
