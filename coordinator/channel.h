// How this folder's clients dial a coordinator. Included by .cc files that have gRPC.
#pragma once

#include <memory>
#include <string>

namespace grpc {
class Channel;
}

namespace ranklab::coordinator {

// Of its own, so that one client's end is not another's; retries a refused connection quickly,
// since a cluster's processes start together; messages of any size.
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address);

}  // namespace ranklab::coordinator
