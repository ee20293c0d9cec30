// The settings of gRPC's connections, equal on both ends, and why: docs/decisions/0001.
#pragma once

#include <memory>
#include <string>

namespace grpc {
class Channel;
class ServerBuilder;
}  // namespace grpc

namespace ranklab::transport {

// What a measurement may vary; everybody else takes the defaults.
struct StreamSettings {
  int http2_frame_bytes = 1 << 20;
  int window_bytes = 4 << 20;
  int write_buffer_bytes = 1 << 20;
  bool probe_bandwidth = false;
  int read_chunk_bytes = 0;  // 0: gRPC's own
};

void Apply(const StreamSettings& settings, grpc::ServerBuilder& builder);

// A channel with a connection of its own (not shared with another channel to the same address): it
// goes when the channel goes, and nothing of a generation leaks into the next.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           const StreamSettings& settings = {});

// What a process needs once, before its first gRPC object (ServiceHost::Start and
// MakeChannel do it). Idempotent, from any thread.
// - gRPC logs every refused connection and taken port to standard error, although each also comes
//   back as a status: its lines go to our log at debug level, unless GRPC_VERBOSITY or GRPC_TRACE
//   ask for them.
// - gRPC's callback threads stay for the life of the process.
void PrepareGrpc();

}  // namespace ranklab::transport
