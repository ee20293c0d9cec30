// Messages over TCP sockets, one connection a pair of endpoints.
#pragma once

#include <memory>
#include <string>

#include <absl/status/statusor.h>

#include "transport/tcp/body_checksums.h"
#include "transport/tcp/live_loop.h"
#include "transport/wire.h"

namespace ranklab::transport {

struct TcpOptions {
  BodyChecksums body_checksums = BodyChecksums::kBetweenHosts;
};

class TcpPort final : public WirePort {
 public:
  // Listens on `address` ("0.0.0.0:0" picks a port). From any thread. Errors: AlreadyExists, the
  // port is taken; InvalidArgument, an address that cannot be parsed or is not this machine's.
  static absl::StatusOr<std::unique_ptr<TcpPort>> Listen(LiveLoop& loop, const std::string& address,
                                                         const TcpOptions& options = {});
  // From any thread; the loop must still exist. Wires live on.
  ~TcpPort() override;

  int port() const override;
  std::unique_ptr<Wire> Open(const WireOptions& options, DoneFn ready) override;
  std::int64_t refused_connections() const override;

 private:
  class Core;
  explicit TcpPort(std::shared_ptr<Core> core);
  std::shared_ptr<Core> core_;  // shared with the coroutines that greet
};

}  // namespace ranklab::transport
