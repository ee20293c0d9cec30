// The account of a shaped network must be able to fail, live: on a ring of two over TCP that keeps
// its word it holds; with the link halved, the shaping off, or one transfer that does not cross its
// connection it does not.
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

#include <absl/synchronization/mutex.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/training/live_ring.h"

namespace ranklab::worker {
namespace {

using transport::LiveLoop;
using transport::MessageHeader;
using transport::MessageKind;
using transport::Wire;

constexpr Step kSteps = 8;
// A bucket a layer: the last is a few bytes (its messages show the latency), the first has messages
// of 99,840 bytes (they show the bandwidth: 25 ms each).
LiveRingOptions KeptNetwork(double time_scale = 1) {
  LiveRingOptions options;
  options.spec.model = experiment::MlpSpec{{64, 768, 2, 10}};
  options.spec.data.kind = "synthetic";
  options.spec.train.steps = kSteps;
  options.spec.train.batch_per_worker = 4;
  options.spec.cluster.workers = 2;
  options.spec.exchange.bucket = options.spec.exchange.first_bucket = 1;
  options.time_scale = time_scale;
  options.port.alpha = Nanos(static_cast<std::int64_t>(10e6 * time_scale));
  options.port.bandwidth.bytes_per_second = 4e6 / time_scale;
  options.claimed = options.port;
  return options;
}

// A machine too busy for one scale is asked again at a slower one.
TEST(LiveAccount, HoldsOnANetworkThatKeepsItsWord) {
  std::string findings;
  for (const double time_scale : {1.0, 4.0, 16.0}) {
    findings.clear();
    for (const RankOutcome& outcome : RunLiveRing(KeptNetwork(time_scale))) {
      EXPECT_TRUE(outcome.network.bytes_held);
      for (const std::string& finding : outcome.network.findings) {
        findings += finding + "\n";
      }
    }
    if (findings.empty()) {
      return;
    }
    std::printf("scale %g: %s", time_scale, findings.c_str());
  }
  ADD_FAILURE() << findings;
}

TEST(LiveAccount, FailsWhenTheLinkIsHalved) {
  LiveRingOptions options = KeptNetwork();
  options.port.bandwidth.bytes_per_second /= 2;
  for (const RankOutcome& outcome : RunLiveRing(options)) {
    EXPECT_FALSE(outcome.network.bandwidth_held);
    EXPECT_TRUE(outcome.network.bytes_held);
  }
}

TEST(LiveAccount, FailsWhenTheShapingIsOff) {
  LiveRingOptions options = KeptNetwork();
  options.port = {};
  options.port.bandwidth.bytes_per_second = std::numeric_limits<double>::infinity();
  for (const RankOutcome& outcome : RunLiveRing(options)) {
    EXPECT_FALSE(outcome.network.held());
    EXPECT_TRUE(outcome.network.bytes_held);
  }
}

class ShortCut;

// The wires of one ring, by endpoint: how a short cut finds its other end.
class ShortCuts {
 public:
  void Add(Endpoint endpoint, ShortCut* wire) {
    const absl::MutexLock lock(&mutex_);
    wires_[endpoint] = wire;
  }
  ShortCut* Find(Endpoint endpoint) {
    const absl::MutexLock lock(&mutex_);
    return wires_.at(endpoint);
  }

 private:
  absl::Mutex mutex_;
  std::map<Endpoint, ShortCut*> wires_;
};

// Hands worker 0's third large message to its receiver behind the connection's back: the run goes
// on, and a transfer that the exchange needs did not cross the network.
class ShortCut final : public Wire, private transport::WireSink {
 public:
  ShortCut(LiveLoop& loop, ShortCuts& all, std::unique_ptr<Wire> inner)
      : loop_(loop), all_(all), inner_(std::move(inner)) {
    all_.Add(inner_->self(), this);
  }

  Endpoint self() const override { return inner_->self(); }
  void Deliver(transport::WireSink& sink) override {
    sink_ = &sink;
    inner_->Deliver(*this);
  }
  void Send(Endpoint to, const MessageHeader& header, transport::Payload body,
            DoneFn sent) override {
    constexpr Bytes kLarge = 64 << 10;
    const bool large = header.kind == MessageKind::kPosted && body.size >= kLarge;
    if (self().rank != 0 || !large || ++large_messages_ != 3) {
      return inner_->Send(to, header, body, std::move(sent));
    }
    ShortCut* receiver = all_.Find(to);
    receiver->loop_.Post([receiver, from = self(), header,
                          bytes = std::vector<std::byte>(body.data, body.data + body.size)] {
      receiver->Receive(from, header, bytes);
    });
    loop_.Post([sent = std::move(sent)]() mutable { sent(absl::OkStatus()); });
  }
  void Abort(absl::Status reason) override { inner_->Abort(std::move(reason)); }
  transport::WireCounters counters(Endpoint peer) const override { return inner_->counters(peer); }

 private:
  absl::StatusOr<Acceptance> Accept(Endpoint from, const MessageHeader& header) override {
    return sink_->Accept(from, header);
  }
  void Arrived(Endpoint from, const MessageHeader& header, std::uint64_t token) override {
    sink_->Arrived(from, header, token);
  }
  void Lost(Endpoint peer, absl::Status why) override { sink_->Lost(peer, std::move(why)); }

  void Receive(Endpoint from, const MessageHeader& header, const std::vector<std::byte>& bytes) {
    const auto acceptance = sink_->Accept(from, header);
    ASSERT_TRUE(acceptance.ok()) << acceptance.status();
    ASSERT_EQ(acceptance->landing.size, static_cast<Bytes>(bytes.size()));
    std::memcpy(acceptance->landing.data, bytes.data(), bytes.size());
    sink_->Arrived(from, header, acceptance->token);
  }

  LiveLoop& loop_;
  ShortCuts& all_;
  std::unique_ptr<Wire> inner_;
  transport::WireSink* sink_ = nullptr;
  int large_messages_ = 0;
};

TEST(LiveAccount, FailsWhenOneTransferDoesNotCrossItsConnection) {
  ShortCuts all;
  LiveRingOptions options = KeptNetwork();
  options.wrap = [&all](LiveLoop& loop, std::unique_ptr<Wire> wire) {
    return std::make_unique<ShortCut>(loop, all, std::move(wire));
  };
  const std::vector<RankOutcome> outcomes = RunLiveRing(options);
  ASSERT_EQ(outcomes.size(), 2U);
  EXPECT_TRUE(outcomes[0].network.bytes_held);
  EXPECT_FALSE(outcomes[1].network.bytes_held);
  EXPECT_THAT(outcomes[1].network.findings,
              ::testing::Contains(::testing::HasSubstr("bytes arrived where the exchange moves")));
}

}  // namespace
}  // namespace ranklab::worker
