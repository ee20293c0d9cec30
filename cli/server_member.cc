#include "cli/server_member.h"

#include <cstring>
#include <utility>

#include "compute/device.h"
#include "coordinator/barrier.h"
#include "core/run_on_loop.h"
#include "core/status.h"
#include "experiment/lab_spec.h"
#include "ps/placement.h"
#include "ps/shard.h"
#include "worker/lab_optimizer.h"
#include "worker/model.h"
#include "worker/network_account.h"
#include "worker/record_messages.h"
#include "worker/server_setup.h"

namespace ranklab::cli {
namespace {

// The initial parameters of `range`: what every worker starts from too.
absl::StatusOr<std::unique_ptr<compute::Buffer>> InitialParameters(const experiment::LabSpec& spec,
                                                                   compute::CpuDevice& device,
                                                                   Rank server,
                                                                   ps::KeyRange& range) {
  ASSIGN_OR_RETURN(const std::unique_ptr<worker::Model> model,
                   worker::MakeModel(spec, device, /*max_samples=*/1));
  RETURN_IF_ERROR(model->Initialize(spec.seed));
  range = ps::CutEvenly(model->parameter_count(),
                        spec.cluster.servers)[static_cast<std::size_t>(server)];
  const Bytes size = range.size() * static_cast<Bytes>(sizeof(float));
  ASSIGN_OR_RETURN(auto parameters, device.Allocate(size, compute::MemoryKind::kWeights));
  if (size > 0) {
    std::memcpy(parameters->data(),
                model->parameters().data + range.begin * static_cast<Bytes>(sizeof(float)),
                static_cast<std::size_t>(size));
  }
  return parameters;
}

}  // namespace

// A shard and its server on the loop, for one generation.
class ServerMember::Serving {
 public:
  Serving(EventLoop& loop, worker::Network& network) : loop_(loop), network_(network) {}

  ~Serving() {
    // Its answers in flight end with the transport; then nothing points here any more.
    network_.Abort(ranklab::Aborted("the run is over"));
    RunOnLoop(loop_, [this] {
      server_.reset();
      shard_.reset();
    });
  }

  absl::Status Start(const experiment::LabSpec& spec, Rank rank) {
    ASSIGN_OR_RETURN(parameters_, InitialParameters(spec, device_, rank, range_));
    const ps::ShardOptions options = worker::ShardOptionsOf(spec, rank, range_);
    const auto make = [this, optimizer = worker::OptimizerOf(spec)] {
      return compute::MakeOptimizer(optimizer, device_);
    };
    compute::TensorView view{.data = parameters_->data(),
                             .dtype = compute::DType::kFloat32,
                             .shape = {range_.size(), 1, 1, 1},
                             .device = &device_};
    absl::Status made;
    RunOnLoop(loop_, [&] {
      auto shard = ps::Shard::Make(loop_, options, make, view);
      made = shard.status();
      if (shard.ok()) {
        shard_ = *std::move(shard);
        server_ = std::make_unique<ps::Server>(loop_, network_.messenger(), *shard_,
                                               options.worker_count);
      }
    });
    return made;
  }

  ps::ServerReport Report() {
    ps::ServerReport report;
    RunOnLoop(loop_, [&] { report = server_->Report(); });
    return report;
  }

  const ps::KeyRange& range() const { return range_; }

  Holding Describe() {
    Holding holding;
    RunOnLoop(loop_, [&] {
      if (server_ == nullptr) {
        return;
      }
      const ps::ServerReport report = server_->Report();
      holding.range = range_;
      holding.version = shard_->version();
      for (Rank worker = 0; worker < shard_->options().worker_count; ++worker) {
        holding.clocks.push_back(shard_->gate().clock(worker));
      }
      holding.bytes_pushed = report.bytes_pushed;
      holding.bytes_pulled = report.bytes_pulled;
    });
    return holding;
  }

 private:
  EventLoop& loop_;
  worker::Network& network_;
  compute::CpuDevice device_{{.threads = 1}};
  ps::KeyRange range_;
  std::unique_ptr<compute::Buffer> parameters_;
  std::unique_ptr<ps::Shard> shard_;    // on the loop
  std::unique_ptr<ps::Server> server_;  // on the loop
};

namespace {

v1::CellResult ToMessage(const ps::ServerReport& report) {
  v1::CellResult result;
  result.set_bytes_pushed(report.bytes_pushed);
  result.set_bytes_pulled(report.bytes_pulled);
  result.set_busy_ns(report.busy.count());
  result.set_parked_pulls(report.parked_pulls);
  result.set_updates(report.updates);
  for (std::size_t worker = 0; worker < report.staleness.size(); ++worker) {
    for (const auto& [staleness, reads] : report.staleness[worker]) {
      v1::StalenessCount& count = *result.add_staleness();
      count.set_worker(static_cast<int>(worker));
      count.set_staleness(staleness);
      count.set_reads(reads);
    }
  }
  return result;
}

}  // namespace

void ServerMember::Run(worker::Member& member, worker::GenerationInbox& inbox) {
  const v1::Assignment& assignment = inbox.assignment();
  const auto cell = worker::ReadAssignment(assignment, member.loop().Now(), member.clock_offset());
  if (!cell.ok()) {
    return member.SendReady(inbox, cell.status(), "");
  }
  auto network = worker::Network::Open(member.loop(), member.ports(), cell->spec, cell->network);
  if (!network.ok()) {
    return member.SendReady(inbox, network.status(), cell->lab_hash);
  }
  member.ReportLostPeers(inbox, **network);
  Serving serving(member.loop(), **network);
  const worker::GenerationInbox::Attachment attached(inbox, **network, nullptr);
  const absl::Status started = serving.Start(cell->spec, assignment.rank());
  member.SendReady(inbox, started, cell->lab_hash);
  if (!started.ok()) {
    return;
  }
  {
    absl::MutexLock lock(&mutex_);
    serving_ = &serving;
  }
  member.SetProgress(inbox, 0, "serving");
  // It arrives at once, and goes on when every worker has the final parameters.
  member.SendArrival(inbox, coordinator::kFetchedBarrier, "");
  const absl::Status served =
      inbox.WaitReleased(coordinator::kFetchedBarrier, Nanos(assignment.timeout_ns())).status();
  {
    absl::MutexLock lock(&mutex_);
    serving_ = nullptr;
  }
  const ps::ServerReport report = serving.Report();
  v1::CellResult result = ToMessage(report);
  const worker::Network::Report network_report = (*network)->Describe();
  if (served.ok() && worker::IsHeldToAccount(cell->spec)) {
    worker::AddAccount(result, cell->network.port,
                       worker::ClaimedByServer(cell->spec, serving.range().size(), report.updates),
                       network_report);
  }
  worker::AddTo(result, network_report, (*network)->transport());
  member.SendResult(inbox, served, std::move(result));
}

ServerMember::Holding ServerMember::holding() const {
  absl::MutexLock lock(&mutex_);
  return serving_ == nullptr ? Holding{} : serving_->Describe();
}

}  // namespace ranklab::cli
