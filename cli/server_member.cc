#include "cli/server_member.h"

#include <cstring>
#include <utility>

#include "compute/device.h"
#include "coordinator/barrier.h"
#include "core/log.h"
#include "core/run_on_loop.h"
#include "core/status.h"
#include "experiment/lab_spec.h"
#include "experiment/survival.h"
#include "ps/placement.h"
#include "ps/replicator.h"
#include "ps/shard.h"
#include "worker/lab_optimizer.h"
#include "worker/model.h"
#include "worker/network_account.h"
#include "worker/record_messages.h"
#include "worker/server_setup.h"

namespace ranklab::cli {
namespace {

// The initial parameters of `range`: what every worker starts from too.
absl::StatusOr<std::unique_ptr<compute::Buffer>> InitialParameters(worker::Model& model,
                                                                   compute::CpuDevice& device,
                                                                   ps::KeyRange range) {
  const Bytes size = range.size() * static_cast<Bytes>(sizeof(float));
  ASSIGN_OR_RETURN(auto parameters, device.Allocate(size, compute::MemoryKind::kWeights));
  if (size > 0) {
    std::memcpy(parameters->data(),
                model.parameters().data + range.begin * static_cast<Bytes>(sizeof(float)),
                static_cast<std::size_t>(size));
  }
  return parameters;
}

}  // namespace

// A shard and its server on the loop, for one generation; where shards are replicated, also the
// replica of the server before this one.
class ServerMember::Serving {
 public:
  Serving(EventLoop& loop, worker::Network& network, const experiment::LabSpec& spec, Rank rank)
      : loop_(loop), network_(network), spec_(spec), rank_(rank) {}

  ~Serving() {
    // Its answers in flight end with the transport; then nothing points here any more.
    network_.Abort(ranklab::Aborted("the run is over"));
    RunOnLoop(loop_, [this] {
      server_.reset();
      replicator_.reset();
      standby_.shard.reset();
      own_.shard.reset();
    });
  }

  absl::Status Start(std::uint32_t generation) {
    ASSIGN_OR_RETURN(const std::unique_ptr<worker::Model> model,
                     worker::MakeModel(spec_, device_, /*max_samples=*/1));
    RETURN_IF_ERROR(model->Initialize(spec_.seed));
    ranges_ = ps::CutEvenly(model->parameter_count(), spec_.cluster.servers);
    RETURN_IF_ERROR(Make(*model, rank_, /*standby=*/false, own_));
    if (experiment::Replicates(spec_)) {
      if (model->parameter_count() < spec_.cluster.servers) {
        return InvalidArgument("replicas on %d servers of %d parameters: some have none",
                               spec_.cluster.servers, model->parameter_count());
      }
      RETURN_IF_ERROR(Make(*model, Before(), /*standby=*/true, standby_));
    }
    RunOnLoop(loop_, [this, generation] { Serve(generation); });
    return absl::OkStatus();
  }

  // A member was lost, and the run goes on; on the loop.
  void Gone(const v1::MemberGone& gone) {
    if (gone.role() == v1::ROLE_WORKER) {
      return server_->Remove(gone.rank());
    }
    if (gone.has_heir() && gone.heir() == rank_) {
      const absl::Status taken = server_->TakeOver();
      Log(LogLevel::kInfo, "the shard of server %d is served here: %s", gone.rank(),
          taken.ok() ? "its replica is whole" : MessageOf(taken));
    }
    if (replicator_ != nullptr && gone.rank() == Heir()) {
      replicator_->Stop();
    }
  }

  ps::ServerReport Report() {
    ps::ServerReport report;
    RunOnLoop(loop_, [&] { report = server_->Report(); });
    return report;
  }

  ps::KeyRange range() const { return ranges_[static_cast<std::size_t>(rank_)]; }

  Holding Describe() {
    Holding holding;
    RunOnLoop(loop_, [&] {
      if (server_ == nullptr) {
        return;
      }
      const ps::ServerReport report = server_->Report();
      holding.range = range();
      holding.version = own_.shard->version();
      for (Rank worker = 0; worker < own_.shard->options().worker_count; ++worker) {
        holding.clocks.push_back(own_.shard->gate().clock(worker));
      }
      holding.bytes_pushed = report.bytes_pushed;
      holding.bytes_pulled = report.bytes_pulled;
    });
    return holding;
  }

 private:
  struct Held {
    std::unique_ptr<compute::Buffer> parameters;
    std::unique_ptr<ps::Shard> shard;  // on the loop
  };

  Rank Heir() const { return (rank_ + 1) % spec_.cluster.servers; }
  Rank Before() const { return (rank_ + spec_.cluster.servers - 1) % spec_.cluster.servers; }

  // The shard of `server`, or a replica of it.
  absl::Status Make(worker::Model& model, Rank server, bool standby, Held& held) {
    const ps::KeyRange range = ranges_[static_cast<std::size_t>(server)];
    ASSIGN_OR_RETURN(held.parameters, InitialParameters(model, device_, range));
    ps::ShardOptions options = worker::ShardOptionsOf(spec_, server, range);
    options.standby = standby;
    const auto make = [this, optimizer = worker::OptimizerOf(spec_)] {
      return compute::MakeOptimizer(optimizer, device_);
    };
    const compute::TensorView view{.data = held.parameters->data(),
                                   .dtype = compute::DType::kFloat32,
                                   .shape = {range.size(), 1, 1, 1},
                                   .device = &device_};
    absl::Status made;
    RunOnLoop(loop_, [&] {
      auto shard = ps::Shard::Make(loop_, options, make, view);
      made = shard.status();
      if (shard.ok()) {
        held.shard = *std::move(shard);
      }
    });
    return made;
  }

  void Serve(std::uint32_t generation) {
    transport::Messenger& messenger = network_.messenger();
    server_ = std::make_unique<ps::Server>(loop_, messenger, *own_.shard, spec_.cluster.workers);
    if (standby_.shard == nullptr) {
      return;
    }
    server_->HoldReplica(*standby_.shard, Before());
    replicator_ = std::make_unique<ps::Replicator>(
        messenger,
        ps::ReplicatorOptions{
            .generation = generation, .heir = {Role::kServer, Heir()}, .range = range()});
    own_.shard->ReplicateWith(
        [this](const ps::ReplicatedUpdate& update, const compute::TensorView& gradients,
               DoneFn done) { replicator_->Replicate(update, gradients, std::move(done)); });
  }

  EventLoop& loop_;
  worker::Network& network_;
  const experiment::LabSpec& spec_;
  const Rank rank_;
  compute::CpuDevice device_{{.threads = 1}};
  std::vector<ps::KeyRange> ranges_;  // [server]
  Held own_;
  Held standby_;
  std::unique_ptr<ps::Replicator> replicator_;  // on the loop
  std::unique_ptr<ps::Server> server_;          // on the loop
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
  Serving serving(member.loop(), **network, cell->spec, assignment.rank());
  const worker::GenerationInbox::Attachment attached(inbox, **network, nullptr);
  const absl::Status started = serving.Start(assignment.generation());
  member.SendReady(inbox, started, cell->lab_hash);
  if (!started.ok()) {
    return;
  }
  const worker::GenerationInbox::LossListener listener(
      inbox, [&serving, &loop = member.loop()](const v1::MemberGone& gone) {
        loop.Post([&serving, gone] { serving.Gone(gone); });  // before it is taken down
      });
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
