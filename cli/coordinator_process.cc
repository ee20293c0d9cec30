#include "cli/coordinator_process.h"

#include <atomic>
#include <cstdio>
#include <memory>
#include <utility>

#include <unistd.h>

#include "cli/build_id.h"
#include "cli/exit_code.h"
#include "cli/forecast.h"
#include "cli/signals.h"
#include "coordinator/coordinator_service.h"
#include "coordinator/host_clock.h"
#include "core/log.h"
#include "core/status.h"
#include "core/status_latch.h"
#include "transport/grpc/service_host.h"
#include "transport/tcp/live_loop.h"

namespace ranklab::cli {
namespace {

void Announce(int fd, int port) {
  if (fd < 0) {
    std::printf("ranklab coordinator listens on port %d\n", port);
    std::fflush(stdout);
    return;
  }
  const std::string line = std::to_string(port) + "\n";
  if (write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    Log(LogLevel::kWarning, "could not announce the port");
  }
  close(fd);
}

}  // namespace

int RunCoordinatorProcess(const CoordinatorProcessOptions& options) {
  BlockEndingSignals();
  SetLogName("coordinator");
  transport::LiveLoop loop;
  StatusLatch finished;
  std::atomic<int> exit_code{kSuccess};
  coordinator::CoordinatorOptions service_options;
  service_options.build = kBuild;
  service_options.clock = coordinator::HostClock();
  service_options.once = options.once;
  service_options.keep_pool = options.keep_pool;
  service_options.forecast = ForecastCell;
  service_options.finished = [&](int code) {
    exit_code = code;
    finished.Set(absl::OkStatus());
  };
  coordinator::CoordinatorService service(loop, std::move(service_options));
  auto host =
      transport::ServiceHost::Start({.address = options.listen, .services = {&service.service()}});
  if (!host.ok()) {
    return Fail(host.status());
  }
  Announce(options.announce_fd, (*host)->port());
  SignalWatcher signals([&](int) {
    exit_code = kLostPeer;
    finished.Set(absl::OkStatus());
  });
  while (!finished.SleepUnlessSet(std::chrono::hours(1))) {
  }
  loop.RunAndWait([&] { service.Shutdown(exit_code.load(), "the coordinator is ending"); });
  (*host)->Shutdown(std::chrono::milliseconds(500));
  loop.Stop();
  return exit_code.load();
}

}  // namespace ranklab::cli
