#include "coordinator/control_plane.h"

#include <utility>

#include "core/log.h"
#include "core/status.h"

namespace ranklab::coordinator {
namespace {

constexpr Nanos kTickEvery = std::chrono::milliseconds(50);
constexpr Nanos kJoinWithin = std::chrono::seconds(10);
constexpr const char* kConnectionClosed = "the session's connection closed";

JoinRequest FromProto(const v1::JoinRequest& proto) {
  JoinRequest request{.role = proto.role() == v1::ROLE_SERVER ? Role::kServer : Role::kWorker,
                      .contact = {.host = proto.host(),
                                  .grpc_port = proto.grpc_port(),
                                  .tcp_port = proto.tcp_port()},
                      .incarnation = proto.incarnation(),
                      .wanted_rank = {},
                      .build = proto.build(),
                      .loopback = proto.loopback(),
                      .launched = proto.launched()};
  if (proto.has_wanted_rank()) {
    request.wanted_rank = proto.wanted_rank();
  }
  return request;
}

v1::MemberStatus ToProto(const PoolMember& member, Nanos now) {
  v1::MemberStatus proto;
  proto.set_member(member.id);
  proto.set_role(member.request.role == Role::kWorker ? v1::ROLE_WORKER : v1::ROLE_SERVER);
  proto.set_rank(-1);
  proto.set_host(member.request.contact.host);
  proto.set_grpc_port(member.request.contact.grpc_port);
  proto.set_step(member.heartbeat.step);
  proto.set_phase(member.heartbeat.phase);
  proto.set_loop_lag_ns(member.heartbeat.loop_lag.count());
  proto.set_last_seen_ns((now - member.last_seen).count());
  proto.set_clock_offset_ns(member.heartbeat.clock_offset.count());
  proto.set_clock_residual_ns(member.heartbeat.clock_residual.count());
  return proto;
}

}  // namespace

ControlPlane::ControlPlane(EventLoop& loop, CoordinatorOptions options)
    : loop_(loop),
      options_(std::move(options)),
      membership_({.build = options_.build, .suspect_after = options_.suspect_after}) {}

ControlPlane::~ControlPlane() { loop_.Cancel(tick_); }

// From the first call on: an idle coordinator sleeps, and one that never listened has no timer.
void ControlPlane::StartTicking() {
  if (tick_ == TimerId::kNone && !shut_down_) {
    ScheduleTick();
  }
}

void ControlPlane::ScheduleTick() {
  tick_ = loop_.RunAt(loop_.Now() + kTickEvery, [this] {
    ScheduleTick();
    Tick();
  });
}

void ControlPlane::Tick() {
  const Nanos now = loop_.Now();
  AnnounceLosses();
  for (auto& [stream, session] : sessions_) {
    if (session.member == 0 && now >= session.join_until) {
      CloseSession(*stream, session, DeadlineExceeded("no join request came within 10 s"));
    }
  }
  if (conductor_ != nullptr) {
    Carry(client_dropped_.empty() ? conductor_->Tick(now)
                                  : conductor_->Cancel(client_dropped_, now));
  }
  if (concluding_ && now >= concluding_->until) {
    Settle({.exit_code = 3,
            .text = "the lab is complete, but its client did not say what it made of it",
            .dismiss_pool = concluding_->end.dismiss_pool});
  }
  FinishOnceQuiet();
}

// ---- sessions -------------------------------------------------------------------------------

void ControlPlane::Opened(MemberStream& stream) {
  StartTicking();
  Session& session = sessions_[&stream];
  session.join_until = loop_.Now() + kJoinWithin;
  if (shut_down_ || finishing_) {
    CloseSession(stream, session, Unavailable("the coordinator is ending"));
  }
}

void ControlPlane::Received(MemberStream& stream, v1::MemberMessage message) {
  const auto found = sessions_.find(&stream);
  if (found == sessions_.end() || found->second.closing) {
    return;
  }
  Session& session = found->second;
  if (session.member == 0) {
    if (message.has_join()) {
      Join(stream, session, message.join());
    } else {
      CloseSession(stream, session, InvalidArgument("a session begins with a join request"));
    }
  } else if (message.has_heartbeat()) {
    Beat(session.member, message.heartbeat());
  } else if (message.has_join()) {
    const MemberId member = session.member;
    CloseSession(stream, session, InvalidArgument("member %d has joined already", member));
    membership_.ReportLost(member, {.reporter = 0, .what = "it joined twice in one session"});
    AnnounceLosses();
  } else if (conductor_ != nullptr) {
    Carry(conductor_->Handle(session.member, std::move(message), loop_.Now()));
  }
}

void ControlPlane::Join(MemberStream& stream, Session& session, const v1::JoinRequest& request) {
  const absl::StatusOr<MemberId> joined = membership_.Join(FromProto(request), loop_.Now());
  if (!joined.ok()) {
    Log(LogLevel::kWarning, "refused: %s", MessageOf(joined.status()));
    CloseSession(stream, session, joined.status());
    return;
  }
  session.member = *joined;
  session.once = request.once();
  streams_[*joined] = &stream;
  v1::CoordinatorMessage message;
  message.mutable_joined()->set_member(*joined);
  stream.Send(std::move(message));
  const PoolMember& member = *membership_.Find(*joined);
  Log(LogLevel::kInfo, "%s joined", NameOf(member));
  if (conductor_ != nullptr) {
    Carry(conductor_->Joined(member, loop_.Now()));
  }
}

void ControlPlane::Beat(MemberId member, const v1::Heartbeat& heartbeat) {
  membership_.Beat(member,
                   {.generation = heartbeat.generation(),
                    .step = heartbeat.step(),
                    .phase = heartbeat.phase(),
                    .loop_lag = Nanos(heartbeat.loop_lag_ns()),
                    .clock_offset = Nanos(heartbeat.clock_offset_ns()),
                    .clock_residual = Nanos(heartbeat.clock_residual_ns())},
                   loop_.Now());
}

void ControlPlane::CloseSession(MemberStream& stream, Session& session, absl::Status status) {
  session.closing = true;
  session.join_until = Nanos::max();
  streams_.erase(session.member);
  stream.Close(std::move(status));
}

void ControlPlane::Ended(MemberStream& stream) {
  const auto found = sessions_.find(&stream);
  if (found == sessions_.end()) {
    return;
  }
  const MemberId member = found->second.member;
  streams_.erase(member);
  sessions_.erase(found);
  membership_.ReportLost(member, {.reporter = 0, .what = kConnectionClosed});
  AnnounceLosses();
  FinishOnceQuiet();
}

void ControlPlane::AnnounceLosses() {
  for (const Loss& loss : membership_.Tick(loop_.Now())) {
    Log(LogLevel::kInfo, "%s was lost: %s", NameOf(loss.member), loss.evidence.what);
    if (MemberStream* stream = StreamOf(loss.member.id)) {
      CloseSession(*stream, sessions_.at(stream), Unavailable("lost: %s", loss.evidence.what));
    }
    if (conductor_ != nullptr) {
      Carry(conductor_->Lost(loss, loop_.Now()));
    }
  }
}

MemberStream* ControlPlane::StreamOf(MemberId member) const {
  const auto found = streams_.find(member);
  return found == streams_.end() ? nullptr : found->second;
}

// ---- the end --------------------------------------------------------------------------------

void ControlPlane::Dismiss(int exit_code, const std::string& reason, Whom whom) {
  for (auto& [stream, session] : sessions_) {
    if (session.closing || (whom == Whom::kThoseWithOnce && !session.once)) {
      continue;
    }
    if (session.member != 0) {
      v1::CoordinatorMessage message;
      message.mutable_dismiss()->set_exit_code(exit_code);
      message.mutable_dismiss()->set_reason(reason);
      stream->Send(std::move(message));
      membership_.Leave(session.member);
    }
    CloseSession(*stream, session, absl::OkStatus());
  }
}

void ControlPlane::FinishOnceQuiet() {
  if (!finishing_ || ClientStillReads()) {
    return;
  }
  const bool quiet = sessions_.empty() && open_clients_ == 0;
  if (quiet || loop_.Now() >= finish_by_) {
    const int exit_code = *std::exchange(finishing_, std::nullopt);
    shut_down_ = true;
    if (options_.finished) {
      options_.finished(exit_code);
    }
  }
}

v1::StatusReply ControlPlane::Status() const {
  v1::StatusReply status;
  status.set_build(options_.build);
  status.set_verdict(last_verdict_);
  for (const auto& [id, member] : membership_.pool()) {
    *status.add_members() = ToProto(member, loop_.Now());
  }
  if (conductor_ != nullptr) {
    conductor_->Describe(status);
  }
  return status;
}

void ControlPlane::Shutdown(int exit_code, const std::string& reason) {
  if (conductor_ != nullptr) {
    Carry(conductor_->Cancel("the coordinator was stopped: " + reason, loop_.Now()));
  }
  concluding_.reset();
  finishing_.reset();  // whoever shuts us down needs no telling
  shut_down_ = true;
  loop_.Cancel(tick_);
  Dismiss(exit_code, reason, Whom::kEverybody);
}

}  // namespace ranklab::coordinator
