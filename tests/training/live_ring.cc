#include "tests/training/live_ring.h"

#include <map>
#include <string>
#include <thread>
#include <utility>

#include <absl/synchronization/mutex.h>
#include <gtest/gtest.h>

#include "core/status.h"
#include "core/status_latch.h"
#include "transport/tcp/tcp_port.h"
#include "worker/network.h"
#include "worker/network_account.h"
#include "worker/rank_faults.h"
#include "worker/synthetic.h"
#include "worker/training_run.h"

namespace ranklab::worker {
namespace {

constexpr Nanos kLimit = std::chrono::seconds(120);

// The barriers of one run, by name.
class Meetings {
 public:
  explicit Meetings(int workers) : workers_(workers) {}

  absl::Status Meet(const std::string& name) {
    absl::MutexLock lock(&mutex_);
    const int& arrived = ++arrived_[name];
    const auto all_are_here = [&] { return arrived == workers_; };
    return mutex_.AwaitWithTimeout(absl::Condition(&all_are_here),
                                   absl::Nanoseconds(kLimit.count()))
               ? absl::OkStatus()
               : DeadlineExceeded("barrier %s", name);
  }

 private:
  const int workers_;
  absl::Mutex mutex_;
  std::map<std::string, int> arrived_;
};

class Observer final : public RunObserver {
 public:
  Observer(Meetings& meetings, std::vector<experiment::StepRecord>& steps)
      : meetings_(meetings), steps_(steps) {}

  void OnPhase(Step, const char*) override {}
  void OnStep(const experiment::StepRecord& record, TraceBuffer::Taken) override {
    steps_.push_back(record);
  }
  void OnFault(const FaultChange&, Step, const std::string&) override {}
  absl::Status Barrier(const std::string& name) override { return meetings_.Meet(name); }
  absl::StatusOr<std::vector<std::string>> Exchange(const std::string&,
                                                    const std::string&) override {
    return Unimplemented("a ring needs no tokens");
  }

 private:
  Meetings& meetings_;
  std::vector<experiment::StepRecord>& steps_;
};

class WrappingPort final : public transport::WirePort {
 public:
  WrappingPort(transport::LiveLoop& loop, const WrapWire& wrap) : loop_(loop), wrap_(wrap) {
    auto port = transport::TcpPort::Listen(loop, "127.0.0.1:0");
    EXPECT_TRUE(port.ok()) << port.status();
    port_ = *std::move(port);
  }

  int port() const override { return port_->port(); }
  std::int64_t refused_connections() const override { return port_->refused_connections(); }
  std::unique_ptr<transport::Wire> Open(const transport::WireOptions& options,
                                        DoneFn ready) override {
    auto wire = port_->Open(options, std::move(ready));
    return wrap_ ? wrap_(loop_, std::move(wire)) : std::move(wire);
  }

 private:
  transport::LiveLoop& loop_;
  const WrapWire& wrap_;
  std::unique_ptr<transport::TcpPort> port_;
};

struct LiveWorker {
  explicit LiveWorker(const WrapWire& wrap) : port(loop, wrap) {}

  transport::LiveLoop loop;
  WrappingPort port;
};

absl::Status Train(const LiveRingOptions& options, Rank rank,
                   const std::vector<std::unique_ptr<LiveWorker>>& workers, Meetings& meetings,
                   RankOutcome& outcome) {
  LiveWorker& self = *workers[static_cast<std::size_t>(rank)];
  NetworkOptions network_options{.self = {Role::kWorker, rank},
                                 .generation = 1,
                                 .secret = 42,
                                 .workers = {},
                                 .servers = {},
                                 .port = options.port,
                                 .time_scale = options.time_scale,
                                 .seed = 1,
                                 .deadline = self.loop.Now() + kLimit};
  for (const auto& worker : workers) {
    network_options.workers.push_back(
        {.host = "127.0.0.1", .grpc_port = 0, .tcp_port = worker->port.port()});
  }
  ASSIGN_OR_RETURN(const Dataset data, MakeSynthetic(options.spec.data));
  ASSIGN_OR_RETURN(const std::unique_ptr<Network> network,
                   Network::Open(self.loop, {self.port, self.port}, options.spec, network_options));
  RankFaults faults(rank, options.spec.cluster.workers, options.spec.scenario);
  Observer observer(meetings, outcome.steps);
  const StatusLatch aborted;
  TrainingRun run(self.loop, *network, data, faults, aborted, observer,
                  {.spec = options.spec,
                   .rank = rank,
                   .generation = 1,
                   .time_scale = options.time_scale,
                   .exchange_timeout = kLimit});
  RETURN_IF_ERROR(run.Prepare());
  RETURN_IF_ERROR(meetings.Meet("go"));
  ASSIGN_OR_RETURN(const TrainingResult result, run.Run());
  ASSIGN_OR_RETURN(const Bytes claimed,
                   ClaimedByWorker(options.spec, rank, run.buckets(), result.steps));
  outcome.network = Judge(options.claimed, claimed, network->Describe());
  return absl::OkStatus();
}

}  // namespace

std::vector<RankOutcome> RunLiveRing(const LiveRingOptions& options) {
  const int count = options.spec.cluster.workers;
  std::vector<std::unique_ptr<LiveWorker>> workers;
  for (Rank rank = 0; rank < count; ++rank) {
    workers.push_back(std::make_unique<LiveWorker>(options.wrap));
  }
  Meetings meetings(count);
  std::vector<RankOutcome> outcomes(static_cast<std::size_t>(count));
  std::vector<absl::Status> ends(outcomes.size());
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank] {
      const auto at = static_cast<std::size_t>(rank);
      ends[at] = Train(options, rank, workers, meetings, outcomes[at]);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    EXPECT_TRUE(ends[rank].ok()) << "worker " << rank << ": " << ends[rank];
  }
  return outcomes;
}

}  // namespace ranklab::worker
