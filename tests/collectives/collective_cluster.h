// Ranks on one virtual loop, each with its own transport, for tests.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <absl/status/status.h>

#include "collectives/communicator.h"
#include "collectives/cpu_reducer.h"
#include "core/check.h"
#include "core/trace.h"
#include "fabric/link_model.h"
#include "sim/virtual_loop.h"
#include "transport/local_wire.h"
#include "transport/messenger.h"
#include "transport/shaped_wire.h"

namespace ranklab::collectives {

struct RecordedTrace final : TraceSink {
  void Record(const Span&) override {}
  void Record(const CollectiveSpan& span) override { spans.push_back(span); }
  void Record(const CounterSample&) override {}

  std::vector<CollectiveSpan> spans;
};

// Takes virtual time for each byte, one reduction after the other, and then does it.
class SlowReducer final : public compute::Reducer {
 public:
  SlowReducer(EventLoop& loop, double seconds_per_byte)
      : loop_(loop), seconds_per_byte_(seconds_per_byte) {}

  void Reduce(compute::ReduceOp op, compute::TensorView target, compute::TensorView source,
              DoneFn done) override {
    const double seconds = static_cast<double>(target.byte_count()) * seconds_per_byte_;
    free_at_ = std::max(free_at_, loop_.Now()) + Nanos(static_cast<std::int64_t>(seconds * 1e9));
    loop_.RunAt(free_at_, [this, op, target, source, done = std::move(done)]() mutable {
      if (target.data == nullptr) {
        return done(absl::OkStatus());
      }
      reducer_.Reduce(op, target, source, std::move(done));
    });
  }

 private:
  EventLoop& loop_;
  double seconds_per_byte_;
  Nanos free_at_{};
  CpuReducer reducer_;
};

struct ClusterOptions {
  int ranks = 0;
  std::optional<fabric::LinkSpec> port{};  // shaped, or messages take no time
  std::uint64_t seed = 1;                  // of the shape's jitter
  double reduction_seconds_per_byte = 0;
  std::uint32_t generation = 7;
  Bytes eager_limit = transport::MessengerOptions{}.eager_limit;  // larger ones wait for credit
};

class CollectiveCluster {
 public:
  explicit CollectiveCluster(const ClusterOptions& options) : options_(options) {
    for (Rank rank = 0; rank < options.ranks; ++rank) {
      const Endpoint self{Role::kWorker, rank};
      std::unique_ptr<transport::Wire> wire = network_.Connect(self);
      if (options.port) {
        wire = std::make_unique<transport::ShapedWire>(
            loop_, std::move(wire),
            transport::ShapeOptions{.port = *options.port,
                                    .seed = options.seed + static_cast<std::uint64_t>(rank)});
      }
      auto messenger = std::make_unique<transport::Messenger>(
          loop_, *wire,
          transport::MessengerOptions{.generation = options.generation,
                                      .eager_limit = options.eager_limit});
      nodes_.push_back({std::move(wire), std::move(messenger)});
    }
  }

  // Ends what is still under way, so that no run outlives the test.
  ~CollectiveCluster() {
    for (Node& node : nodes_) {
      node.messenger->Abort(absl::CancelledError("the test is over"));
    }
    loop_.Run();
  }
  CollectiveCluster(const CollectiveCluster&) = delete;
  CollectiveCluster& operator=(const CollectiveCluster&) = delete;

  ProcessGroup World(Rank rank) const {
    std::vector<Rank> members(nodes_.size());
    std::iota(members.begin(), members.end(), 0);
    return {.id = 0, .members = members, .my_rank = rank, .generation = options_.generation};
  }

  ExecutorDeps Deps(Rank rank) {
    return {loop_, *nodes_[static_cast<std::size_t>(rank)].messenger, slow_reducer_, trace_};
  }

  std::unique_ptr<Communicator> Join(Rank rank, const ProcessGroup& group,
                                     const CommunicatorOptions& options = {}) {
    auto communicator = Communicator::Make(Deps(rank), group, options);
    RANKLAB_CHECK(communicator.ok(), "%s", communicator.status().ToString());
    return *std::move(communicator);
  }

  // One communicator of the world a rank.
  std::vector<std::unique_ptr<Communicator>> JoinWorld(const CommunicatorOptions& options = {}) {
    std::vector<std::unique_ptr<Communicator>> communicators;
    for (Rank rank = 0; rank < options_.ranks; ++rank) {
      communicators.push_back(Join(rank, World(rank), options));
    }
    return communicators;
  }

  sim::VirtualLoop& loop() { return loop_; }
  RecordedTrace& trace() { return trace_; }
  transport::Messenger& messenger(Rank rank) {
    return *nodes_[static_cast<std::size_t>(rank)].messenger;
  }
  void Kill(Rank rank) { network_.Disconnect({Role::kWorker, rank}); }

 private:
  struct Node {
    std::unique_ptr<transport::Wire> wire;
    std::unique_ptr<transport::Messenger> messenger;
  };

  ClusterOptions options_;
  sim::VirtualLoop loop_;
  transport::LocalNetwork network_{loop_};
  SlowReducer slow_reducer_{loop_, options_.reduction_seconds_per_byte};
  RecordedTrace trace_;
  std::vector<Node> nodes_;
};

// How one call ended: nothing until then.
struct Ending {
  std::optional<absl::Status> status;
  Nanos at{};
  int times = 0;

  DoneFn On(EventLoop& loop) {
    return [this, &loop](absl::Status result) {
      status = std::move(result);
      at = loop.Now();
      ++times;
    };
  }
  bool ok() const { return times == 1 && status->ok(); }
};

}  // namespace ranklab::collectives
