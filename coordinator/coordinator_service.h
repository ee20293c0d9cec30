// The coordinator's gRPC service: reactors translate, post to the loop and return; Membership,
// Barrier and Conductor decide.
#pragma once

#include <memory>
#include <string>

#include <absl/functional/any_invocable.h>
#include <absl/status/statusor.h>

#include "core/event_loop.h"
#include "core/units.h"
#include "experiment/lab_spec.h"

namespace grpc {
class Service;
}

namespace ranklab::coordinator {

// What the conductor needs to know of a cell before it runs it: how long a step takes on the
// modelled cluster, and the loopback bytes it moves. Given by the program, because the model's
// costs live above this folder (worker/predict.h).
struct CellForecast {
  double modelled_step_seconds = 0;     // 0: native
  double modelled_compute_seconds = 0;  // of one worker's step
  double port_bytes_per_second = 0;     // of the modelled network, undilated; 0: native
};
using ForecastFn = absl::AnyInvocable<absl::StatusOr<CellForecast>(const experiment::Cell&)>;

struct CoordinatorOptions {
  std::string build;
  Nanos suspect_after = std::chrono::seconds(5);
  ForecastFn forecast;
  // Runs on the loop when the lab is over and the service was told to end with it (--once), or when
  // the pool was dismissed.
  absl::AnyInvocable<void(int exit_code)> finished;
  bool once = false;
};

class CoordinatorService {
 public:
  CoordinatorService(EventLoop& loop, CoordinatorOptions options);
  ~CoordinatorService();

  grpc::Service& service();  // to register with the process's server

  // On the loop: dismisses every member and ends every call, before the server shuts down.
  void Shutdown(int exit_code, const std::string& reason);

 private:
  class Core;
  std::shared_ptr<Core> core_;
};

}  // namespace ranklab::coordinator
