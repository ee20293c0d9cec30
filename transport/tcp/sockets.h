// Addresses and options of sockets.
#pragma once

#include <string>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "transport/tcp/asio.h"

namespace ranklab::transport {

struct HostPort {
  std::string host;  // a name or a number, without brackets
  std::string port;  // digits
};

// "127.0.0.1:4444", "node7:4444", "[::1]:4444". Errors: InvalidArgument.
absl::StatusOr<HostPort> ParseHostPort(const std::string& address);

// An acceptor that listens. Errors: AlreadyExists, the port is taken; InvalidArgument, an address
// that cannot be parsed or is not this machine's; PermissionDenied.
absl::StatusOr<tcp::acceptor> ListenOn(asio::io_context& io, const std::string& address);

// For data between ranks: no Nagle, not inherited by programs that this process starts.
void TuneSocket(tcp::socket& socket);

// Whether both ends have one address: what is sent stays in this machine.
bool IsWithinHost(const tcp::socket& socket);

// Whether the other side has neither closed nor sent anything that was not read.
bool PeerIsSilentAndThere(tcp::socket& socket);

// "127.0.0.1:53110", or "a closed socket".
std::string RemoteName(const tcp::socket& socket);

}  // namespace ranklab::transport
