#include "sim/cell_simulation.h"

#include <chrono>
#include <limits>
#include <memory>
#include <utility>
#include <variant>

#include "compute/device.h"
#include "core/check.h"
#include "core/status.h"
#include "experiment/survival.h"
#include "ps/placement.h"
#include "ps/server.h"
#include "sim/virtual_loop.h"
#include "transport/local_wire.h"
#include "transport/messenger.h"
#include "worker/exchange.h"
#include "worker/precision.h"
#include "worker/server_setup.h"

namespace ranklab::sim {
namespace {

using experiment::CellRun;
using experiment::LabSpec;
using experiment::ParameterServerSpec;

// Of one exchange, in virtual time: far beyond any step, so that only a stall meets it.
constexpr Nanos kExchangeTimeout = std::chrono::hours(24 * 365);

// Nothing is summed: time is the model's.
class NoArithmetic final : public compute::Reducer {
 public:
  void Reduce(compute::ReduceOp, compute::TensorView, compute::TensorView, DoneFn done) override {
    done(absl::OkStatus());
  }
};

class NoUpdate final : public compute::Optimizer {
 public:
  absl::Status Apply(compute::TensorView, compute::TensorView, double) override {
    return absl::OkStatus();
  }
  std::vector<std::pair<std::string, compute::TensorView>> State() override { return {}; }
};

// An endpoint's way to the others. Its messenger goes first.
struct Port {
  Port(EventLoop& loop, transport::LocalNetwork& network, Endpoint self,
       const transport::ShapeOptions& shape)
      : wire(loop, network.Connect(self), shape), messenger(loop, wire, {.generation = 1}) {}

  transport::ShapedWire wire;
  transport::Messenger messenger;
};

struct ServerNode {
  std::unique_ptr<Port> port;
  std::unique_ptr<compute::Buffer> parameters;
  std::unique_ptr<ps::Shard> shard;
  std::unique_ptr<ps::Server> server;
};

struct WorkerNode {
  WorkerNode(Rank rank, const LabSpec& spec)
      : faults(rank, spec.cluster.workers, spec.scenario), trace(spec.train.trace) {}

  std::unique_ptr<Port> port;
  worker::RankFaults faults;
  worker::TraceBuffer trace;
  std::unique_ptr<worker::ExchangeMachine> exchange;
  std::unique_ptr<SimulatedWorker> worker;
};

experiment::NetworkRecord NetworkOf(const Port& port, const std::vector<Endpoint>& peers) {
  experiment::NetworkRecord record{.endpoint = NameOf(port.wire.self())};
  for (const Endpoint peer : peers) {
    const transport::WireCounters counters = port.wire.counters(peer);
    record.connections.push_back({.peer = NameOf(peer),
                                  .body_sent = counters.body_sent,
                                  .body_received = counters.body_received,
                                  .wire_sent = counters.wire_sent,
                                  .wire_received = counters.wire_received,
                                  .messages_sent = counters.messages_sent,
                                  .messages_received = counters.messages_received});
  }
  return record;
}

class CellSimulation {
 public:
  CellSimulation(const LabSpec& spec, std::int64_t training_samples)
      : spec_(spec),
        training_samples_(training_samples),
        plan_(spec.seed, training_samples, spec.GlobalBatch()) {}

  ~CellSimulation() {
    // After an error operations may be open: they end before what they point to.
    for (auto& node : workers_) {
      node->port->messenger.Abort(Aborted("the simulation is over"));
    }
    for (auto& node : servers_) {
      node.port->messenger.Abort(Aborted("the simulation is over"));
    }
    loop_.Run();
  }

  absl::Status Prepare() {
    ASSIGN_OR_RETURN(model_, worker::MakeModel(spec_, device_, /*max_samples=*/1));
    ASSIGN_OR_RETURN(const worker::DeviceStep modelled, worker::DeviceStep::Make(spec_, *model_));
    modelled_.emplace(modelled);
    buckets_ = worker::CutBuckets(*model_, worker::BucketsOf(spec_));
    if (!UsesServers()) {
      for (worker::Bucket& bucket : buckets_) {
        bucket.sent.data = nullptr;  // only sizes travel
      }
    }
    ASSIGN_OR_RETURN(shape_.port, worker::PortOf(spec_.fabric, /*time_scale=*/1.0));
    shape_.seed = spec_.seed;
    RETURN_IF_ERROR(MakeServers());
    return MakeWorkers();
  }

  absl::StatusOr<SimulatedCell> Run() {
    for (auto& node : workers_) {
      node->worker->Begin([this](const absl::Status& status) { failure_.Update(status); });
    }
    while (failure_.ok() && loop_.RunOne()) {
    }
    RETURN_IF_ERROR(failure_);
    for (const auto& node : workers_) {
      if (!node->worker->finished()) {
        return Internal("nothing is left to happen, but %s", node->worker->Where());
      }
    }
    return Collect();
  }

 private:
  bool UsesServers() const {
    return std::holds_alternative<ParameterServerSpec>(spec_.exchange.kind);
  }

  std::vector<Endpoint> Members(Role role, int count, Endpoint without) const {
    std::vector<Endpoint> members;
    for (Rank rank = 0; rank < count; ++rank) {
      if (const Endpoint member{role, rank}; member != without) {
        members.push_back(member);
      }
    }
    return members;
  }

  // Whom it exchanges messages with.
  std::vector<Endpoint> PeersOf(Endpoint self) const {
    return self.role == Role::kWorker && UsesServers()
               ? Members(Role::kServer, spec_.cluster.servers, self)
               : Members(Role::kWorker, spec_.cluster.workers, self);
  }

  absl::Status MakeServers() {
    const int count = UsesServers() ? spec_.cluster.servers : 0;
    const auto ranges = ps::CutEvenly(model_->parameter_count(), std::max(1, count));
    for (Rank rank = 0; rank < count; ++rank) {
      const ps::KeyRange range = ranges[static_cast<std::size_t>(rank)];
      ServerNode& node = servers_.emplace_back();
      node.port = std::make_unique<Port>(loop_, network_, Endpoint{Role::kServer, rank}, shape_);
      ASSIGN_OR_RETURN(node.parameters,
                       device_.Allocate(range.size() * compute::SizeOf(compute::DType::kFloat32),
                                        compute::MemoryKind::kWeights));
      const auto no_update = []() -> absl::StatusOr<std::unique_ptr<compute::Optimizer>> {
        return std::make_unique<NoUpdate>();
      };
      ASSIGN_OR_RETURN(node.shard,
                       ps::Shard::Make(loop_, worker::ShardOptionsOf(spec_, rank, range), no_update,
                                       compute::ViewOf(*node.parameters, compute::DType::kFloat32,
                                                       {range.size(), 1, 1, 1})));
      node.server = std::make_unique<ps::Server>(loop_, node.port->messenger, *node.shard,
                                                 spec_.cluster.workers);
    }
    return absl::OkStatus();
  }

  absl::Status MakeWorkers() {
    const int count = spec_.cluster.workers;
    for (Rank rank = 0; rank < count; ++rank) {
      const Endpoint self{Role::kWorker, rank};
      peers_.push_back(PeersOf(self));
      auto& node = workers_.emplace_back(std::make_unique<WorkerNode>(rank, spec_));
      node->port = std::make_unique<Port>(loop_, network_, self, shape_);
      ASSIGN_OR_RETURN(node->exchange,
                       worker::MakeExchangeMachine(
                           {loop_, node->port->messenger, node->trace, no_arithmetic_, *model_},
                           {.spec = spec_.exchange,
                            .wire = worker::WireOf(spec_),
                            .generation = 1,
                            .rank = rank,
                            .workers = count,
                            .servers = static_cast<int>(servers_.size()),
                            .timeout = kExchangeTimeout}));
    }
    for (Rank rank = 0; rank < count; ++rank) {
      WorkerNode& node = *workers_[static_cast<std::size_t>(rank)];
      node.worker = std::make_unique<SimulatedWorker>(
          SimulatedWorkerDeps{loop_, *node.exchange, *modelled_, node.faults, node.trace, plan_,
                              buckets_, node.port->wire, peers_[static_cast<std::size_t>(rank)],
                              meet_},
          SimulatedWorkerOptions{
              .rank = rank,
              .workers = count,
              .steps = spec_.train.steps,
              .micro_batches = spec_.train.accumulate,
              .input = {.depth = spec_.data.prefetch, .loaders = spec_.data.loaders},
              .overlap = spec_.exchange.overlap,
              .meet_before_exchange = spec_.exchange.barrier});
    }
    return absl::OkStatus();
  }

  void Meet(Task task) {
    met_.push_back(std::move(task));
    if (met_.size() == workers_.size()) {
      for (Task& waiting : std::exchange(met_, {})) {
        loop_.Post(std::move(waiting));
      }
    }
  }

  SimulatedCell Collect() const {
    SimulatedCell cell;
    cell.events = loop_.events_run();
    cell.run.simulated = true;
    for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
      const SimulatedWorker& worker = *workers_[rank]->worker;
      cell.run.steps.push_back(worker.records());
      cell.run.workers.push_back(RecordOf(rank));
      cell.traces.push_back(worker.traced());
      cell.faults.insert(cell.faults.end(), worker.faults().begin(), worker.faults().end());
    }
    for (const ServerNode& node : servers_) {
      cell.run.servers.push_back(RecordOf(node));
    }
    return cell;
  }

  experiment::WorkerRecord RecordOf(std::size_t rank) const {
    constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();
    const WorkerNode& node = *workers_[rank];
    experiment::WorkerRecord record{
        .final_loss = kAbsent, .test_loss = kAbsent, .accuracy = kAbsent};
    for (const experiment::StepRecord& step : node.worker->records()) {
      record.samples += step.samples;
      record.steps = step.step;
    }
    record.passes = static_cast<double>(record.samples) / static_cast<double>(training_samples_);
    record.messages = node.port->wire.Report().messages;
    record.network = NetworkOf(*node.port, peers_[rank]);
    return record;
  }

  experiment::ServerRecord RecordOf(const ServerNode& node) const {
    const ps::ServerReport report = node.server->Report();
    return {.bytes_pushed = report.bytes_pushed,
            .bytes_pulled = report.bytes_pulled,
            .busy = report.busy,
            .parked_pulls = report.parked_pulls,
            .updates = report.updates,
            .staleness = report.staleness,
            .network = NetworkOf(*node.port, PeersOf(node.port->wire.self()))};
  }

  const LabSpec& spec_;
  const std::int64_t training_samples_;
  VirtualLoop loop_;
  transport::LocalNetwork network_{loop_};
  compute::CpuDevice device_{{.threads = 1}};
  NoArithmetic no_arithmetic_;
  transport::ShapeOptions shape_;
  std::unique_ptr<worker::Model> model_;  // one for all: values do not matter
  std::optional<worker::DeviceStep> modelled_;
  worker::SamplePlan plan_;
  std::vector<worker::Bucket> buckets_;
  std::vector<Task> met_;
  absl::AnyInvocable<void(Task)> meet_ = [this](Task task) { Meet(std::move(task)); };
  std::vector<std::vector<Endpoint>> peers_;  // [worker]
  std::vector<ServerNode> servers_;
  std::vector<std::unique_ptr<WorkerNode>> workers_;
  absl::Status failure_;
};

}  // namespace

std::optional<std::string> WhyNotSimulated(const LabSpec& spec) {
  if (spec.compute.native()) {
    return "compute is native: it takes what a machine takes; name a compute.model";
  }
  if (spec.fabric.native() && !std::holds_alternative<experiment::NoExchange>(spec.exchange.kind)) {
    return "the fabric is native: it is what a machine's network is; name a fabric.preset";
  }
  if (std::holds_alternative<experiment::NcclSpec>(spec.exchange.kind)) {
    return "exchange.kind nccl has no model";
  }
  if (experiment::Replicates(spec)) {
    return "cluster.on_loss continue replicates the servers' shards, which has no model";
  }
  for (const experiment::Injection& injection : spec.scenario.injections) {
    if (std::holds_alternative<experiment::Kill>(injection.effect)) {
      return "its scenario kills a process: a lost peer has no modelled time";
    }
  }
  return std::nullopt;
}

absl::StatusOr<SimulatedCell> SimulateCell(const experiment::Cell& cell,
                                           std::int64_t training_samples) {
  RANKLAB_CHECK(!WhyNotSimulated(cell.spec) && cell.spec.cluster.workers >= 1);
  CellSimulation simulation(cell.spec, training_samples);
  RETURN_IF_ERROR(simulation.Prepare());
  ASSIGN_OR_RETURN(SimulatedCell simulated, simulation.Run());
  simulated.run.part = cell.part;
  simulated.run.cell = cell.index;
  return simulated;
}

}  // namespace ranklab::sim
