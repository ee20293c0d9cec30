// gRPC's side of FrameStream: the reactors of TensorWire.Stream. They translate, post to the loop
// and return; nothing is decided here.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "transport/grpc/channel_settings.h"
#include "transport/grpc/frame_stream.h"
#include "transport/grpc/loop_gate.h"

namespace grpc {
class Service;
}

namespace ranklab::transport {

// Calls TensorWire.Stream at `address`, over a connection of its own that ends with the stream.
// While nobody listens there, gRPC keeps trying; Close gives up. On the loop.
std::shared_ptr<FrameStream> DialStream(std::shared_ptr<LoopGate> gate, const std::string& address,
                                        const StreamSettings& settings);

// The served side: a stream that somebody opened. On the loop.
using StreamAccepted = std::function<void(std::shared_ptr<FrameStream>)>;

// The TensorWire service, to be registered with a server. Streams are accepted as long as the gate
// is open, and told Unavailable afterwards.
std::unique_ptr<grpc::Service> MakeTensorWireService(std::shared_ptr<LoopGate> gate,
                                                     StreamAccepted accepted);

}  // namespace ranklab::transport
