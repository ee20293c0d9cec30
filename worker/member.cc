#include "worker/member.h"

#include <utility>

#include "core/check.h"
#include "core/log.h"
#include "core/status.h"
#include "experiment/lab_reader.h"

namespace ranklab::worker {

Member::Member(EventLoop& loop, const NetworkPorts& ports, MemberWork& work)
    : loop_(loop), ports_(ports), work_(work) {}

void Member::Assigned(const v1::Assignment& assignment) {
  auto inbox = std::make_shared<GenerationInbox>(assignment);
  absl::MutexLock lock(&mutex_);
  inboxes_[assignment.generation()] = inbox;
  pending_.push_back(std::move(inbox));
}

std::shared_ptr<GenerationInbox> Member::InboxOf(std::uint32_t generation) {
  absl::MutexLock lock(&mutex_);
  const auto found = inboxes_.find(generation);
  return found == inboxes_.end() ? nullptr : found->second;
}

void Member::Go(std::uint32_t generation) {
  if (const auto inbox = InboxOf(generation)) {
    inbox->go().Set(absl::OkStatus());
  }
}

void Member::Released(const v1::BarrierRelease& release) {
  if (const auto inbox = InboxOf(release.generation())) {
    inbox->Release(release.barrier(), {release.tokens().begin(), release.tokens().end()});
  }
}

void Member::Aborted(const v1::AbortGeneration& abort) {
  if (const auto inbox = InboxOf(abort.generation())) {
    inbox->Abort(abort.reason());
  }
}

void Member::Gone(const v1::MemberGone& gone) {
  if (const auto inbox = InboxOf(gone.generation())) {
    inbox->Gone(gone);
  }
}

void Member::Inject(const v1::Injection& injection) {
  const absl::StatusOr<experiment::Injection> read = experiment::ReadInjection(injection.text());
  if (!read.ok()) {
    Log(LogLevel::kWarning, "injection %d refused: %s", injection.id(), MessageOf(read.status()));
    return;
  }
  absl::MutexLock lock(&mutex_);
  for (auto& [number, inbox] : inboxes_) {
    inbox->Inject(injection.id(), *read);
  }
}

void Member::End() {
  absl::MutexLock lock(&mutex_);
  ended_ = true;
  for (auto& [number, inbox] : inboxes_) {
    inbox->Abort("the process is ending");
  }
}

std::shared_ptr<GenerationInbox> Member::NextAssignment() {
  absl::MutexLock lock(&mutex_);
  const auto available = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return ended_ || !pending_.empty();
  };
  // Waiting for work without a deadline is what an idle member does; its session watches over it.
  mutex_.Await(absl::Condition(&available));
  if (ended_) {
    return nullptr;
  }
  auto inbox = std::move(pending_.front());
  pending_.pop_front();
  activity_.generation = inbox->assignment().generation();
  activity_.rank = inbox->assignment().rank();
  return inbox;
}

void Member::Serve() {
  while (const std::shared_ptr<GenerationInbox> inbox = NextAssignment()) {
    const v1::Assignment& assignment = inbox->assignment();
    SetLogName(absl::StrFormat("%s %d", assignment.role() == v1::ROLE_WORKER ? "worker" : "server",
                               assignment.rank()));
    SetProgress(*inbox, 0, "preparing");
    work_.Run(*this, *inbox);
    SetProgress(*inbox, 0, "idle");
    absl::MutexLock lock(&mutex_);
    inboxes_.erase(assignment.generation());
    activity_ = Activity{};
  }
}

void Member::Send(v1::MemberMessage message) {
  RANKLAB_CHECK(session_ != nullptr);
  loop_.Post(
      [this, message = std::move(message)]() mutable { session_->Send(std::move(message)); });
}

void Member::SendReady(const GenerationInbox& inbox, const absl::Status& status,
                       const std::string& lab_hash) {
  v1::MemberMessage message;
  v1::Ready& ready = *message.mutable_ready();
  ready.set_generation(inbox.assignment().generation());
  ready.set_lab_hash(lab_hash);
  ready.set_code(static_cast<int>(status.code()));
  ready.set_error(MessageOf(status));
  Send(std::move(message));
}

void Member::SendResult(const GenerationInbox& inbox, const absl::Status& status,
                        v1::CellResult result) {
  result.set_generation(inbox.assignment().generation());
  result.set_code(static_cast<int>(status.code()));
  result.set_error(MessageOf(status));
  result.set_clock_offset_ns(session_->clock_offset().count());
  result.set_clock_residual_ns(session_->clock_residual().count());
  v1::MemberMessage message;
  *message.mutable_result() = std::move(result);
  Send(std::move(message));
}

void Member::SendArrival(const GenerationInbox& inbox, const std::string& barrier,
                         const std::string& token) {
  v1::MemberMessage message;
  message.mutable_arrival()->set_generation(inbox.assignment().generation());
  message.mutable_arrival()->set_barrier(barrier);
  message.mutable_arrival()->set_token(token);
  Send(std::move(message));
}

void Member::SetProgress(const GenerationInbox& inbox, Step step, const std::string& phase) {
  session_->SetProgress(inbox.assignment().generation(), step, phase);
  absl::MutexLock lock(&mutex_);
  activity_.step = step;
  activity_.phase = phase;
}

void Member::ReportLostPeers(const GenerationInbox& inbox, Network& network) {
  loop_.Post([this, &network, generation = inbox.assignment().generation()] {
    network.messenger().OnLost([this, generation](Endpoint peer, const absl::Status& why) {
      v1::MemberMessage message;
      v1::PeerLost& lost = *message.mutable_peer_lost();
      lost.set_generation(generation);
      lost.set_role(peer.role == Role::kWorker ? v1::ROLE_WORKER : v1::ROLE_SERVER);
      lost.set_rank(peer.rank);
      lost.set_what(MessageOf(why));
      session_->Send(std::move(message));
    });
  });
}

Member::Activity Member::activity() const {
  absl::MutexLock lock(&mutex_);
  return activity_;
}

}  // namespace ranklab::worker
