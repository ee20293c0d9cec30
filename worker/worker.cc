#include "worker/worker.h"

#include <utility>

#include "core/status.h"
#include "worker/assignment.h"
#include "worker/network_account.h"
#include "worker/record_messages.h"

namespace ranklab::worker {
namespace {

constexpr Nanos kGoTimeout = std::chrono::seconds(60);
// What a worker without memory leaves its peers to come as far: longer than the coordinator waits.
constexpr Nanos kRefusalLeaves = std::chrono::seconds(2);

// Passes on what a run says to the coordinator.
class RunReporter final : public RunObserver {
 public:
  RunReporter(Member& member, GenerationInbox& inbox)
      : member_(member), inbox_(inbox), clock_offset_(member.clock_offset()) {}

  void OnPhase(Step step, const char* phase) override { member_.SetProgress(inbox_, step, phase); }

  void OnStep(const experiment::StepRecord& record, TraceBuffer::Taken trace) override {
    v1::MemberMessage message;
    message.mutable_steps()->set_generation(generation());
    *message.mutable_steps()->add_rows() = ToMessage(record, trace, clock_offset_);
    member_.Send(std::move(message));
  }

  void OnFault(const FaultChange& change, Step step, const std::string& applied) override {
    v1::MemberMessage message;
    v1::InjectionApplied& out = *message.mutable_applied();
    out.set_generation(generation());
    out.set_injection(change.id);
    out.set_step(step);
    out.set_asked(change.injection.text);
    out.set_applied(applied);
    out.set_ends(!change.begins);
    member_.Send(std::move(message));
  }

  absl::Status Barrier(const std::string& name) override { return Exchange(name, "").status(); }

  absl::StatusOr<std::vector<std::string>> Exchange(const std::string& name,
                                                    const std::string& token) override {
    member_.SendArrival(inbox_, name, token);
    return inbox_.WaitReleased(name, Nanos(inbox_.assignment().timeout_ns()));
  }

 private:
  std::uint32_t generation() const { return inbox_.assignment().generation(); }

  Member& member_;
  GenerationInbox& inbox_;
  // One for the whole run: a better estimate in mid-run would tear a step from the one before.
  const Nanos clock_offset_;
};

}  // namespace

void Worker::Run(Member& member, GenerationInbox& inbox) {
  const v1::Assignment& assignment = inbox.assignment();
  const auto cell = ReadAssignment(assignment, member.loop().Now(), member.clock_offset());
  if (!cell.ok()) {
    return member.SendReady(inbox, cell.status(), "");
  }
  const auto data = datasets_.Load(cell->spec.data, assignment.lab_name());
  if (!data.ok()) {
    return member.SendReady(inbox, data.status(), cell->lab_hash);
  }
  auto network = Network::Open(member.loop(), member.ports(), cell->spec, cell->network);
  if (!network.ok()) {
    return member.SendReady(inbox, network.status(), cell->lab_hash);
  }
  member.ReportLostPeers(inbox, **network);
  RankFaults faults(assignment.rank(), assignment.workers_size(), cell->spec.scenario);
  RunReporter reporter(member, inbox);
  TrainingRun run(member.loop(), **network, **data, faults, inbox.aborted(), reporter,
                  {.spec = cell->spec,
                   .rank = assignment.rank(),
                   .generation = assignment.generation(),
                   .time_scale = cell->network.time_scale,
                   .calibrate = assignment.calibrate(),
                   .exchange_timeout = ExchangeTimeout(cell->spec, cell->network.time_scale)});
  const GenerationInbox::Attachment attached(inbox, **network, &faults);
  const absl::Status prepared = run.Prepare();
  member.SendReady(inbox, prepared, cell->lab_hash);
  if (!prepared.ok() || !inbox.go().Wait(kGoTimeout, "the coordinator's go").ok()) {
    return;
  }
  const GenerationInbox::LossListener listener(inbox, [&run](const v1::MemberGone& gone) {
    if (gone.role() == v1::ROLE_SERVER && gone.has_heir()) {
      run.ServerLost(gone.rank(), gone.heir());
    }
  });
  const absl::StatusOr<TrainingResult> trained = run.Run();
  v1::CellResult result;
  const Network::Report report = (*network)->Describe();
  if (trained.ok()) {
    AddTo(result, *trained);
    result.set_loss_floor((*data)->loss_floor.value_or(0));
    const auto claimed =
        ClaimedByWorker(cell->spec, assignment.rank(), run.buckets(), trained->steps);
    if (IsHeldToAccount(cell->spec) && claimed.ok()) {
      AddAccount(result, cell->network.port, *claimed, report);
    }
  }
  AddTo(result, report, (*network)->transport());
  member.SendResult(inbox, trained.status(), std::move(result));
  if (absl::IsResourceExhausted(trained.status())) {
    // Ranks in lockstep are refused together: none of them should see a lost peer before its own.
    inbox.aborted().SleepUnlessSet(kRefusalLeaves);
  }
}

}  // namespace ranklab::worker
