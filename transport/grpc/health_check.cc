#include "transport/grpc/health_check.h"

#include <chrono>

#include <grpcpp/grpcpp.h>

#include "core/seconds.h"
#include "core/status.h"
#include "protos/health.grpc.pb.h"
#include "transport/grpc/channel_settings.h"

namespace ranklab::transport {

namespace health = ::grpc::health::v1;

absl::StatusOr<bool> AskWhetherServing(const std::string& address, Nanos timeout) {
  const auto stub = health::Health::NewStub(MakeChannel(address));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::duration_cast<std::chrono::system_clock::duration>(timeout));
  health::HealthCheckResponse reply;
  const grpc::Status status = stub->Check(&context, {}, &reply);
  if (!status.ok()) {
    return Unavailable("%s did not answer a health check within %.1f s: %s", address,
                       SecondsOf(timeout), status.error_message());
  }
  return reply.status() == health::HealthCheckResponse::SERVING;
}

}  // namespace ranklab::transport
