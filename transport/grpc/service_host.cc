#include "transport/grpc/service_host.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/status.h"

namespace ranklab::transport {
namespace {

struct HostAndPort {
  std::string host;
  std::string port;
};

absl::StatusOr<HostAndPort> Split(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  const std::string port = colon == std::string::npos ? "" : address.substr(colon + 1);
  const bool digits = port.find_first_not_of("0123456789") == std::string::npos;
  if (port.empty() || !digits || port.size() > 5 || std::stoi(port) > 65535 || colon == 0) {
    return InvalidArgument("\"%s\" is no address to listen on; one looks like 0.0.0.0:7070",
                           address);
  }
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);  // [::1]:7070
  }
  return HostAndPort{.host = host, .port = port};
}

// gRPC says that it could not listen, but not why: asks the system for the same port.
absl::Status WhyNotListening(const std::string& address, const HostAndPort& parts) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(parts.host.c_str(), parts.port.c_str(), &hints, &found)) {
    return InvalidArgument("cannot listen on %s: %s", address, gai_strerror(error));
  }
  const int socket_fd = socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, 0);
  const int reuse = 1;  // as gRPC does: connections of an earlier process do not hold the port
  setsockopt(socket_fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse));
  const bool bound =
      bind(socket_fd, found->ai_addr, found->ai_addrlen) == 0 && listen(socket_fd, 1) == 0;
  const int error = bound ? 0 : errno;
  close(socket_fd);
  freeaddrinfo(found);
  switch (error) {
    case 0:
      return Unavailable("gRPC cannot listen on %s", address);
    case EADDRINUSE:
      return AlreadyExists(
          "port %s of %s is taken by another process; stop it, choose another port, or port 0 for "
          "any free one",
          parts.port, parts.host);
    case EADDRNOTAVAIL:
      return InvalidArgument("%s is not an address of this machine; 0.0.0.0 stands for all of them",
                             parts.host);
    default:
      return Unavailable("cannot listen on %s: %s", address, std::strerror(error));
  }
}

}  // namespace

class ServiceHost::Core {
 public:
  std::unique_ptr<grpc::Server> server;
  int port = 0;
};

absl::StatusOr<std::unique_ptr<ServiceHost>> ServiceHost::Start(const ServiceHostOptions& options) {
  ASSIGN_OR_RETURN(const HostAndPort parts, Split(options.address));
  PrepareGrpc();
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  auto core = std::make_unique<Core>();
  grpc::ServerBuilder builder;
  Apply(options.settings, builder);
  builder.AddListeningPort(options.address, grpc::InsecureServerCredentials(), &core->port);
  for (grpc::Service* service : options.services) {
    builder.RegisterService(service);
  }
  core->server = builder.BuildAndStart();
  if (core->server == nullptr || core->port == 0) {
    core->server.reset();
    return WhyNotListening(options.address, parts);
  }
  return std::unique_ptr<ServiceHost>(new ServiceHost(std::move(core)));
}

ServiceHost::ServiceHost(std::unique_ptr<Core> core) : core_(std::move(core)) {}

ServiceHost::~ServiceHost() { Shutdown(Nanos(0)); }

int ServiceHost::port() const { return core_->port; }

void ServiceHost::SetServing(bool serving) {
  core_->server->GetHealthCheckService()->SetServingStatus(serving);
}

void ServiceHost::Shutdown(Nanos grace) {
  if (core_->server == nullptr) {
    return;
  }
  core_->server->Shutdown(std::chrono::system_clock::now() +
                          std::chrono::duration_cast<std::chrono::system_clock::duration>(grace));
  core_->server->Wait();
  core_->server.reset();
}

}  // namespace ranklab::transport
