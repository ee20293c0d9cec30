// The lab's side of ControlPlane: its client, its conductor's actions, its end.
#include <algorithm>
#include <random>
#include <utility>
#include <variant>

#include "coordinator/control_plane.h"
#include "core/log.h"
#include "core/overloaded.h"
#include "core/seconds.h"
#include "core/status.h"
#include "experiment/lab_reader.h"

namespace ranklab::coordinator {
namespace {

constexpr Nanos kQuietWithin = std::chrono::seconds(1);
// A client writes its report first.
constexpr Nanos kConcludeWithin = std::chrono::seconds(30);
// A client may be held up, but not for ever.
constexpr Nanos kReadWithin = std::chrono::seconds(30);
constexpr Bytes kClientBacklog = 64 << 20;

v1::RunEvent VerdictEvent(int exit_code, const std::string& text) {
  v1::RunEvent event;
  event.mutable_verdict()->set_exit_code(exit_code);
  event.mutable_verdict()->set_text(text);
  return event;
}

}  // namespace

void ControlPlane::RunLab(const v1::RunLabRequest& request, ClientStream& client) {
  StartTicking();
  ++open_clients_;
  if (shut_down_ || finishing_) {
    client.Close(Unavailable("the coordinator is ending"));
    return;
  }
  if (conductor_ != nullptr) {
    client.Close(ResourceExhausted("a lab is running: %s", conductor_->lab_name()));
    return;
  }
  if (!request.build().empty() && request.build() != options_.build) {
    client.Close(FailedPrecondition("the client is build \"%s\", the coordinator is build \"%s\"",
                                    request.build(), options_.build));
    return;
  }
  if (concluding_) {
    client.Close(
        ResourceExhausted("a lab is ending; its client has yet to say what it made of it"));
    return;
  }
  client_ = &client;
  client_concludes_ = request.concludes();
  const bool dismiss_pool = request.dismiss_pool() || options_.once;
  const std::vector<std::string> overrides(request.overrides().begin(), request.overrides().end());
  absl::StatusOr<experiment::Lab> lab =
      experiment::ReadLab(request.lab_text(), request.lab_name(), overrides);
  if (!lab.ok()) {
    const std::string text = MessageOf(lab.status());
    client.Send(VerdictEvent(2, text));
    End({.exit_code = 2, .text = text, .dismiss_pool = dismiss_pool});
    return;
  }
  membership_.SetSuspectAfter(options_.suspect_after);
  conductor_ = std::make_unique<Conductor>(
      *std::move(lab),
      ConductorOptions{
          .join_timeout = Nanos(request.join_timeout_ns()),
          .dismiss_pool = dismiss_pool,
          .keep_pool = options_.keep_pool,
          .seed = (std::uint64_t{std::random_device()()} << 32) ^ std::random_device()()},
      membership_, options_.forecast, loop_.Now());
  Carry(conductor_->Tick(loop_.Now()));
}

void ControlPlane::Ended(ClientStream& client) {
  --open_clients_;
  if (reading_ && reading_->client == &client) {
    reading_.reset();
  }
  if (client_ == &client) {
    client_ = nullptr;
    if (conductor_ != nullptr) {
      Carry(conductor_->Cancel("cancelled by the client", loop_.Now()));
    }
  }
  FinishOnceQuiet();
}

void ControlPlane::Carry(Actions actions) {
  for (Action& action : actions) {
    std::visit(Overloaded{[this](SendToMember& send) {
                            if (MemberStream* stream = StreamOf(send.member)) {
                              stream->Send(std::move(send.message));
                            }
                          },
                          [this](TellClient& tell) { TellLabsClient(std::move(tell.event)); },
                          [this](const EndLab& end) { End(end); }},
               action);
  }
}

// For a client that takes nothing this process would have to keep everything.
void ControlPlane::TellLabsClient(v1::RunEvent event) {
  if (client_ == nullptr) {
    return;
  }
  client_->Send(std::move(event));
  if (client_->waiting() <= kClientBacklog) {
    return;
  }
  // The next tick cancels the lab: here its conductor's actions are being carried out.
  client_dropped_ = absl::StrFormat(
      "the lab's client at %s does not read its events: %d MiB wait for it; the lab is cancelled",
      client_->peer(), client_->waiting() >> 20);
  Log(LogLevel::kWarning, "%s", client_dropped_);
  std::exchange(client_, nullptr)->Drop(absl::CancelledError(client_dropped_));
}

void ControlPlane::End(const EndLab& end) {
  last_verdict_ = end.text;
  client_dropped_.clear();
  conductor_.reset();
  membership_.SetSuspectAfter(options_.suspect_after);
  const bool concludes = client_ != nullptr && client_concludes_;
  if (client_ != nullptr) {
    reading_ = Reading{
        .client = client_, .waiting = client_->waiting(), .until = loop_.Now() + kReadWithin};
    std::exchange(client_, nullptr)->Close(absl::OkStatus());
  }
  if (end.exit_code == 0 && concludes && SomebodyEndsWithTheLab()) {
    concluding_ = Concluding{.end = end, .until = loop_.Now() + kConcludeWithin};
  } else {
    Settle(end);
  }
}

bool ControlPlane::SomebodyEndsWithTheLab() const {
  return options_.once || std::any_of(sessions_.begin(), sessions_.end(),
                                      [](const auto& entry) { return entry.second.once; });
}

absl::Status ControlPlane::Conclude(const v1::ConcludeRequest& request) {
  if (request.exit_code() < 0 || request.exit_code() > 3) {
    return InvalidArgument("exit code %d; 0 to 3 are the command line's", request.exit_code());
  }
  last_verdict_ = request.text();
  if (concluding_) {
    Settle({.exit_code = request.exit_code(),
            .text = request.text(),
            .dismiss_pool = concluding_->end.dismiss_pool});
  }
  return absl::OkStatus();
}

// The lab's exit code stands: whoever was to end with it ends.
void ControlPlane::Settle(const EndLab& end) {
  concluding_.reset();
  last_verdict_ = end.text;
  Dismiss(end.exit_code, end.text, end.dismiss_pool ? Whom::kEverybody : Whom::kThoseWithOnce);
  if (end.dismiss_pool) {
    finishing_ = end.exit_code;
    finish_by_ = loop_.Now() + kQuietWithin;
  }
}

// Whether the verdict of the lab that is over is still on its way to a client that takes it.
bool ControlPlane::ClientStillReads() {
  if (!reading_) {
    return false;
  }
  const Bytes waiting = reading_->client->waiting();
  if (waiting < reading_->waiting) {
    reading_->waiting = waiting;
    reading_->until = loop_.Now() + kReadWithin;
  }
  if (loop_.Now() < reading_->until) {
    return true;
  }
  Log(LogLevel::kWarning, "the lab's client at %s took no event for %.0f s: %d bytes wait for it",
      reading_->client->peer(), SecondsOf(kReadWithin), waiting);
  reading_.reset();
  return false;
}

absl::StatusOr<v1::InjectReply> ControlPlane::Inject(const v1::InjectRequest& request) {
  if (conductor_ == nullptr) {
    return FailedPrecondition("no lab is running");
  }
  Actions actions;
  absl::StatusOr<v1::InjectReply> reply = conductor_->Inject(request, actions);
  Carry(std::move(actions));
  return reply;
}

}  // namespace ranklab::coordinator
