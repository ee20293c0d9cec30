// A process's gRPC server: typed services, the tensor stream, health checking (grpc.health.v1) and
// reflection. SO_REUSEPORT is off, so that a taken port is an error.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "core/units.h"
#include "transport/grpc/channel_settings.h"

namespace grpc {
class Service;
}

namespace ranklab::transport {

struct ServiceHostOptions {
  std::string address;                   // "0.0.0.0:7070"; port 0 picks one
  std::vector<grpc::Service*> services;  // must outlive the host
  StreamSettings settings = {};
};

class ServiceHost {
 public:
  // Errors: AlreadyExists, the port is taken, with how to choose another; InvalidArgument, not an
  // address, or not one of this machine; Unavailable, anything else that the system refuses.
  static absl::StatusOr<std::unique_ptr<ServiceHost>> Start(const ServiceHostOptions& options);
  ~ServiceHost();  // Shutdown without grace

  int port() const;

  // What health checks are answered; serving from the start. From any thread, until Shutdown.
  void SetServing(bool serving);

  // Accepts nothing more, cancels the calls that are open after `grace`, returns when all have
  // ended. Not on the loop: calls may need it to end.
  // Requires: services' reactors finish when they are cancelled, even if their loop has stopped.
  void Shutdown(Nanos grace);

 private:
  class Core;
  explicit ServiceHost(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

}  // namespace ranklab::transport
