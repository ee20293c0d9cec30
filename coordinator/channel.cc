#include "coordinator/channel.h"

#include <absl/base/call_once.h>
#include <grpcpp/grpcpp.h>

#include "protos/coordinator.grpc.pb.h"

namespace ranklab::coordinator {
namespace {

// gRPC's callback threads end with the last channel or server that used them, and in 1.51 that end
// races with a completion under way: the queue is let go twice, and gRPC aborts the process. So
// one user of them, which never connects, lives as long as the process.
void KeepCallbackThreads() {
  struct Keeper {
    std::shared_ptr<grpc::Channel> channel =
        grpc::CreateChannel("unix:/nowhere", grpc::InsecureChannelCredentials());
    std::unique_ptr<v1::Coordinator::Stub> stub = v1::Coordinator::NewStub(channel);
    grpc::ClientContext context;
    v1::ReadClockRequest request;
    v1::ReadClockReply reply;
  };
  static Keeper* const keeper = new Keeper;  // for good, and reachable
  static absl::once_flag once;
  absl::call_once(once, [] {
    keeper->stub->async()->ReadClock(&keeper->context, &keeper->request, &keeper->reply,
                                     [](const grpc::Status&) {});
  });
}

}  // namespace

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address) {
  KeepCallbackThreads();
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  arguments.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace ranklab::coordinator
