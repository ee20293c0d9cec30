#include "coordinator/channel.h"

#include <grpcpp/grpcpp.h>

#include "transport/grpc/channel_settings.h"

namespace ranklab::coordinator {

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address) {
  transport::PrepareGrpc();
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  arguments.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace ranklab::coordinator
