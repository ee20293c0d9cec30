#include "transport/tcp/sockets.h"

#include <charconv>
#include <cstdint>
#include <utility>

#include <fcntl.h>
#include <sys/socket.h>

#include "core/status.h"

namespace ranklab::transport {
namespace {

constexpr int kBacklog = 1024;

void CloseOnExec(int descriptor) { ::fcntl(descriptor, F_SETFD, FD_CLOEXEC); }

absl::Status ListenError(const error_code& error, const std::string& address,
                         const std::string& port) {
  if (error == asio::error::address_in_use) {
    return AlreadyExists(
        "port %s is taken, cannot listen on %s: choose another port, or end the "
        "program that has it (ss -ltnp 'sport = :%s' names it)",
        port, address, port);
  }
  if (error == asio::error::access_denied) {
    return MakeError(absl::StatusCode::kPermissionDenied,
                     "may not listen on %s: ports below 1024 need privileges", address);
  }
  return InvalidArgument("cannot listen on %s: %s", address, error.message());
}

}  // namespace

absl::StatusOr<HostPort> ParseHostPort(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0) {
    return InvalidArgument("address \"%s\" is not host:port", address);
  }
  HostPort parsed{address.substr(0, colon), address.substr(colon + 1)};
  std::uint16_t port = 0;
  const char* end = parsed.port.data() + parsed.port.size();
  const auto [last, error] = std::from_chars(parsed.port.data(), end, port);
  if (error != std::errc() || last != end) {
    return InvalidArgument("address \"%s\": \"%s\" is no port, which is 0 to 65535", address,
                           parsed.port);
  }
  if (parsed.host.front() == '[' && parsed.host.back() == ']') {
    parsed.host = parsed.host.substr(1, parsed.host.size() - 2);
  } else if (parsed.host.find(':') != std::string::npos) {
    return InvalidArgument("address \"%s\": write [%s]:%s", address, parsed.host, parsed.port);
  }
  return parsed;
}

absl::StatusOr<tcp::acceptor> ListenOn(asio::io_context& io, const std::string& address) {
  ASSIGN_OR_RETURN(const HostPort parsed, ParseHostPort(address));
  error_code error;
  tcp::resolver resolver(io);
  const auto found = resolver.resolve(parsed.host, parsed.port, tcp::resolver::passive, error);
  if (error || found.empty()) {
    return InvalidArgument("cannot listen on %s: %s", address, error.message());
  }
  const tcp::endpoint endpoint = *found.begin();
  tcp::acceptor acceptor(io);
  acceptor.open(endpoint.protocol(), error);
  if (!error) {
    CloseOnExec(acceptor.native_handle());
    // A port of a process that just ended may be used; one that somebody listens on may not.
    acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  }
  if (!error) {
    acceptor.bind(endpoint, error);
  }
  if (!error) {
    acceptor.listen(kBacklog, error);
  }
  if (error) {
    return ListenError(error, address, parsed.port);
  }
  return acceptor;
}

void TuneSocket(tcp::socket& socket) {
  error_code ignored;  // a socket without them still works
  CloseOnExec(socket.native_handle());
  socket.set_option(tcp::no_delay(true), ignored);
}

bool IsWithinHost(const tcp::socket& socket) {
  error_code local_error, remote_error;
  const tcp::endpoint local = socket.local_endpoint(local_error);
  const tcp::endpoint remote = socket.remote_endpoint(remote_error);
  return !local_error && !remote_error && local.address() == remote.address();
}

bool PeerIsSilentAndThere(tcp::socket& socket) {
  char byte = 0;
  const ssize_t count = ::recv(socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

std::string RemoteName(const tcp::socket& socket) {
  error_code error;
  const tcp::endpoint remote = socket.remote_endpoint(error);
  if (error) {
    return "a closed socket";
  }
  const std::string host = remote.address().to_string();
  const bool brackets = remote.address().is_v6();
  return (brackets ? "[" + host + "]:" : host + ":") + std::to_string(remote.port());
}

}  // namespace ranklab::transport
