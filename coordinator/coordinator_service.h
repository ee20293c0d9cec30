// The coordinator's gRPC service: reactors translate, post to the loop and return; ControlPlane
// decides.
#pragma once

#include <memory>
#include <string>

#include "coordinator/control_plane.h"
#include "core/event_loop.h"

namespace grpc {
class Service;
}

namespace ranklab::coordinator {

// Order of an ending: Shutdown on the loop, then the server's shutdown while the loop still runs
// (calls end through it), then this object and the loop.
class CoordinatorService {
 public:
  CoordinatorService(EventLoop& loop, CoordinatorOptions options);
  ~CoordinatorService();  // after Shutdown

  grpc::Service& service();  // to register with the process's server

  // On the loop: dismisses every member and ends every call, before the server shuts down.
  void Shutdown(int exit_code, const std::string& reason);

 private:
  class Core;
  std::shared_ptr<Core> core_;
};

}  // namespace ranklab::coordinator
