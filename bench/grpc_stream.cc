// How fast tensors go one way over the gRPC wire, for settings of HTTP/2. The settings that the
// product takes come from here: docs/decisions/0001-grpc-stream-settings.md.
#include <cstddef>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "core/check.h"
#include "core/status.h"
#include "transport/grpc/grpc_port.h"
#include "transport/grpc/service_host.h"
#include "transport/tcp/live_loop.h"

namespace ranklab::transport {
namespace {

constexpr Bytes kTotal = 64 << 20;
constexpr Endpoint kSender{Role::kWorker, 0};
constexpr Endpoint kReceiver{Role::kServer, 0};

class CountingSink final : public WireSink {
 public:
  explicit CountingSink(Bytes message) : landing_(static_cast<std::size_t>(message)) {}

  absl::StatusOr<Acceptance> Accept(Endpoint /*from*/, const MessageHeader& header) override {
    return Acceptance{.landing = {landing_.data(), header.size}};
  }
  void Arrived(Endpoint /*from*/, const MessageHeader& header, std::uint64_t /*token*/) override {
    missing_ -= header.size;
    if (missing_ == 0) {
      arrived_.set_value();
    }
  }
  void Lost(Endpoint /*peer*/, absl::Status why) override {
    RANKLAB_CHECK(missing_ == 0, "%s", MessageOf(why));  // otherwise the measurement is over
  }

  std::future<void> Expect(Bytes bytes) {
    missing_ = bytes;
    arrived_ = {};
    return arrived_.get_future();
  }

 private:
  std::vector<std::byte> landing_;
  Bytes missing_ = 0;
  std::promise<void> arrived_;
};

struct Node {
  Node(Endpoint endpoint, const StreamSettings& settings, Bytes message)
      : self(endpoint), port(loop, settings), sink(message) {
    auto started = ServiceHost::Start(
        {.address = "127.0.0.1:0", .services = {&port.service()}, .settings = settings});
    RANKLAB_CHECK(started.ok(), "%s", MessageOf(started.status()));
    host = *std::move(started);
  }
  ~Node() {
    loop.RunAndWait([this] { wire.reset(); });
    host.reset();
    loop.Stop();
  }

  std::future<absl::Status> Open(const Node& peer) {
    auto ready = std::make_shared<std::promise<absl::Status>>();
    loop.RunAndWait([&] {
      wire = port.Open({.self = self,
                        .generation = 1,
                        .secret = 1,
                        .peers = {{peer.self, "127.0.0.1:" + std::to_string(peer.host->port())}},
                        .deadline = loop.Now() + std::chrono::seconds(10)},
                       [ready](absl::Status status) { ready->set_value(status); });
      wire->Deliver(sink);
    });
    return ready->get_future();
  }

  const Endpoint self;
  LiveLoop loop;
  GrpcPort port;
  CountingSink sink;
  std::unique_ptr<ServiceHost> host;
  std::unique_ptr<Wire> wire;
};

// 64 MiB in messages of `message_kib`, until the last has arrived.
void BM_OneWay(benchmark::State& state) {
  const Bytes message = state.range(0) << 10;
  const StreamSettings settings = {.http2_frame_bytes = static_cast<int>(state.range(1)) << 10,
                                   .window_bytes = static_cast<int>(state.range(2)) << 10,
                                   .write_buffer_bytes = static_cast<int>(state.range(3)) << 10,
                                   .probe_bandwidth = state.range(4) != 0,
                                   .read_chunk_bytes = static_cast<int>(state.range(5)) << 10};
  Node sender(kSender, settings, message);
  Node receiver(kReceiver, settings, message);
  auto sender_ready = sender.Open(receiver);
  auto receiver_ready = receiver.Open(sender);
  RANKLAB_CHECK(sender_ready.get().ok() && receiver_ready.get().ok(), "not connected");
  const std::vector<std::byte> body(static_cast<std::size_t>(message), std::byte{1});
  for (auto _ : state) {
    std::future<void> arrived;
    receiver.loop.RunAndWait([&] { arrived = receiver.sink.Expect(kTotal); });
    sender.loop.RunAndWait([&] {
      for (Bytes sent = 0; sent < kTotal; sent += message) {
        MessageHeader header;
        header.size = message;
        sender.wire->Send(kReceiver, header, {body.data(), message}, [](absl::Status) {});
      }
    });
    arrived.wait();
  }
  state.SetBytesProcessed(state.iterations() * kTotal);
}

// One setting at a time away from the product's own, which come first.
BENCHMARK(BM_OneWay)
    ->ArgNames({"message_kib", "frame_kib", "window_kib", "buffer_kib", "probe", "chunk_kib"})
    ->Args({1024, 1024, 4096, 1024, 0, 0})
    ->Args({1024, 1024, 4096, 1024, 1, 0})
    ->Args({1024, 16, 4096, 1024, 0, 0})
    ->Args({1024, 256, 4096, 1024, 0, 0})
    ->Args({1024, 4096, 4096, 1024, 0, 0})
    ->Args({1024, 1024, 64, 1024, 0, 0})
    ->Args({1024, 1024, 1024, 1024, 0, 0})
    ->Args({1024, 1024, 16384, 1024, 0, 0})
    ->Args({1024, 1024, 4096, 64, 0, 0})
    ->Args({1024, 1024, 4096, 4096, 0, 0})
    ->Args({1024, 1024, 4096, 1024, 0, 64})
    ->Args({1024, 1024, 4096, 1024, 0, 256})
    ->Args({1024, 1024, 4096, 1024, 0, 1024})
    ->Args({1024, 16, 64, 64, 1, 0})  // gRPC's own defaults
    ->Args({64, 1024, 4096, 1024, 0, 0})
    ->Args({65536, 1024, 4096, 1024, 0, 0})
    ->UseRealTime()
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ranklab::transport

BENCHMARK_MAIN();
