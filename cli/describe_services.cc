#include "cli/describe_services.h"

#include <utility>

#include <grpcpp/grpcpp.h>

#include "protos/member.grpc.pb.h"

namespace ranklab::cli {
namespace {

class WorkerService final : public v1::Worker::CallbackService {
 public:
  explicit WorkerService(std::function<v1::WorkerDescription()> describe)
      : describe_(std::move(describe)) {}

  grpc::ServerUnaryReactor* Describe(grpc::CallbackServerContext* context,
                                     const v1::DescribeWorkerRequest*,
                                     v1::WorkerDescription* reply) override {
    *reply = describe_();
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

 private:
  const std::function<v1::WorkerDescription()> describe_;
};

class ParameterServerService final : public v1::ParameterServer::CallbackService {
 public:
  explicit ParameterServerService(std::function<v1::ServerDescription()> describe)
      : describe_(std::move(describe)) {}

  grpc::ServerUnaryReactor* Describe(grpc::CallbackServerContext* context,
                                     const v1::DescribeServerRequest*,
                                     v1::ServerDescription* reply) override {
    *reply = describe_();
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

 private:
  const std::function<v1::ServerDescription()> describe_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeWorkerService(std::function<v1::WorkerDescription()> describe) {
  return std::make_unique<WorkerService>(std::move(describe));
}

std::unique_ptr<grpc::Service> MakeParameterServerService(
    std::function<v1::ServerDescription()> describe) {
  return std::make_unique<ParameterServerService>(std::move(describe));
}

}  // namespace ranklab::cli
