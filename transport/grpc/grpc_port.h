// The tensor stream over gRPC: one bidirectional TensorWire.Stream a pair of endpoints, frames of
// about 1 MiB, encoded by hand (frame_codec) and sent as slices.
#pragma once

#include <memory>

#include "core/event_loop.h"
#include "transport/wire.h"

namespace grpc {
class Service;
}

namespace ranklab::transport {

class GrpcPort final : public WirePort {
 public:
  explicit GrpcPort(EventLoop& loop);
  ~GrpcPort() override;

  grpc::Service& service();      // TensorWire, to register with the ServiceHost
  void SetPort(int port);        // of that host, once it listens

  int port() const override;
  std::unique_ptr<Wire> Open(const WireOptions& options, DoneFn ready) override;
  std::int64_t refused_connections() const override;

 private:
  class Core;
  std::shared_ptr<Core> core_;
};

}  // namespace ranklab::transport
