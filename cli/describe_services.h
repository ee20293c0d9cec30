// What a worker or a parameter server says of itself over gRPC.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "protos/member.pb.h"

namespace grpc {
class Service;
}

namespace ranklab::cli {

// `describe` is called on gRPC's threads, must not block for long and outlive the service.
std::unique_ptr<grpc::Service> MakeWorkerService(std::function<v1::WorkerDescription()> describe);
std::unique_ptr<grpc::Service> MakeParameterServerService(
    std::function<v1::ServerDescription()> describe);

}  // namespace ranklab::cli
