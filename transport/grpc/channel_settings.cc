#include "transport/grpc/channel_settings.h"

#include <cstdlib>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include <grpc/support/log.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/slice.h>

#include "core/log.h"
#include "transport/grpc/frame_codec.h"

namespace ranklab::transport {
namespace {

// A peer that is frozen, or behind a cut link, answers no pings: its streams end after 10 s of
// silence and 5 s without an answer. The second is also the kernel's TCP_USER_TIMEOUT, after which
// bytes that nobody takes are given up and their memory is let go.
constexpr int kKeepaliveMs = 10'000;
constexpr int kKeepaliveTimeoutMs = 5'000;

std::vector<std::pair<std::string, int>> ArgumentsOf(const StreamSettings& settings) {
  std::vector<std::pair<std::string, int>> arguments = {
      {GRPC_ARG_HTTP2_MAX_FRAME_SIZE, settings.http2_frame_bytes},
      {GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, settings.window_bytes},
      {GRPC_ARG_HTTP2_WRITE_BUFFER_SIZE, settings.write_buffer_bytes},
      {GRPC_ARG_HTTP2_BDP_PROBE, settings.probe_bandwidth ? 1 : 0},
      {GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs},
      {GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs},
      // A server counts pings that come faster than it likes as abuse and hangs up; between equals
      // any ping at our own pace is fine, however quiet the stream is.
      {GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0},
      {GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kKeepaliveMs / 2},
      {GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, static_cast<int>(kFrameBytesMax)},
      {GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, static_cast<int>(kFrameBytesMax)},
  };
  if (settings.read_chunk_bytes > 0) {
    arguments.emplace_back(GRPC_ARG_TCP_READ_CHUNK_SIZE, settings.read_chunk_bytes);
  }
  return arguments;
}

void LogQuietly(gpr_log_func_args* line) {
  // After a failed assertion gRPC aborts the process: then this line is the only word about it.
  const bool last_words = std::string_view(line->message).starts_with("assertion failed");
  Log(last_words ? LogLevel::kError : LogLevel::kDebug, "grpc: %s (%s:%d)", line->message,
      line->file, line->line);
}

// The threads that run reactions end with the last channel or server that used them and start again
// with the next. In 1.51 that end races with completions under way ("assertion failed: prior > 0",
// or the thread waits for itself). One call that goes nowhere, on a channel that stays, keeps them.
void KeepCallbackThreads() {
  struct Keeper {
    grpc::GenericStub stub{
        grpc::CreateChannel("unix:/nowhere", grpc::InsecureChannelCredentials())};
    grpc::ClientContext context;
    grpc::Slice nothing;
    grpc::ByteBuffer request{&nothing, 1};
    grpc::ByteBuffer reply;
  };
  static Keeper* const keeper =
      new Keeper;  // for good: also what still runs while the process ends may need it
  keeper->stub.UnaryCall(&keeper->context, "/keep/threads", {}, &keeper->request, &keeper->reply,
                         [](const grpc::Status&) {});
}

}  // namespace

void Apply(const StreamSettings& settings, grpc::ServerBuilder& builder) {
  for (const auto& [name, value] : ArgumentsOf(settings)) {
    builder.AddChannelArgument(name, value);
  }
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
}

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           const StreamSettings& settings) {
  PrepareGrpc();
  grpc::ChannelArguments arguments;
  for (const auto& [name, value] : ArgumentsOf(settings)) {
    arguments.SetInt(name, value);
  }
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // A retry that gRPC makes by itself needs copies of what was sent, and would say Hello twice.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // Peers start within moments of each other: try again soon.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1'000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

void PrepareGrpc() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (std::getenv("GRPC_VERBOSITY") == nullptr && std::getenv("GRPC_TRACE") == nullptr) {
      gpr_set_log_function(&LogQuietly);
    }
    KeepCallbackThreads();
  });
}

}  // namespace ranklab::transport
