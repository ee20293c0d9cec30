// The tensor stream over gRPC: one bidirectional TensorWire.Stream a pair of endpoints, frames of
// about 1 MiB, encoded by hand (frame_codec) and sent as slices.
#pragma once

#include <memory>

#include "core/event_loop.h"
#include "transport/grpc/channel_settings.h"
#include "transport/wire.h"

namespace grpc {
class Service;
}

namespace ranklab::transport {

// Constructed on any thread before the service is served; otherwise used on the loop. Destroyed on
// the loop or once the loop has stopped; wires first, and after the ServiceHost that serves it.
class GrpcPort final : public WirePort {
 public:
  explicit GrpcPort(EventLoop& loop, const StreamSettings& settings = {});
  ~GrpcPort() override;

  grpc::Service& service();  // TensorWire, to register with the ServiceHost
  void SetPort(int port);    // of that host, once it listens

  int port() const override;

  // A port opens a generation once, later ones after it. Besides DeadlineExceeded, `ready` may end
  // at once with what makes waiting useless: see Rendezvous.
  std::unique_ptr<Wire> Open(const WireOptions& options, DoneFn ready) override;

  std::int64_t refused_connections() const override;

 private:
  class Core;
  std::shared_ptr<Core> core_;
};

}  // namespace ranklab::transport
