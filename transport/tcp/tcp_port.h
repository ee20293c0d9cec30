// Messages over TCP sockets, one connection a pair of endpoints.
#pragma once

#include <memory>
#include <string>

#include <absl/status/statusor.h>

#include "transport/tcp/live_loop.h"
#include "transport/wire.h"

namespace ranklab::transport {

class TcpPort final : public WirePort {
 public:
  // Listens on `address` ("0.0.0.0:0" picks a port). Errors: AlreadyExists, the port is taken;
  // InvalidArgument, an address that cannot be parsed or is not this machine's.
  static absl::StatusOr<std::unique_ptr<TcpPort>> Listen(LiveLoop& loop,
                                                         const std::string& address);
  ~TcpPort() override;

  int port() const override;
  std::unique_ptr<Wire> Open(const WireOptions& options, DoneFn ready) override;
  std::int64_t refused_connections() const override;

  class Core;

 private:
  explicit TcpPort(std::shared_ptr<Core> core);
  std::shared_ptr<Core> core_;
};

}  // namespace ranklab::transport
