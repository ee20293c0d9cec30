#include "ps/server.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "core/check.h"
#include "core/endpoint.h"
#include "core/status.h"
#include "ps/protocol.h"
#include "transport/buffer_pool.h"

namespace ranklab::ps {
namespace {

using transport::AnswerFn;
using transport::Landing;
using transport::Payload;
using transport::ReplyHeader;
using transport::RequestHeader;

constexpr Bytes kIdleReplyBytes = 64 << 20;  // reply buffers kept for use again

void IgnoreSent(const absl::Status&) {}

}  // namespace

class Server::Core : public std::enable_shared_from_this<Server::Core> {
 public:
  Core(EventLoop& loop, Shard& shard, int worker_count)
      : loop_(loop), shard_(shard), worker_count_(worker_count), pool_(kIdleReplyBytes) {
    report_.staleness.resize(static_cast<std::size_t>(worker_count));
  }

  void Handle(Endpoint from, const RequestHeader& request, Payload body, AnswerFn answer);
  Landing LandingFor(Endpoint from, const RequestHeader& request, Bytes size);
  void HoldReplica(Shard& standby, Rank of);
  absl::Status TakeOver();
  void Remove(Rank worker);
  void OnStep(absl::AnyInvocable<void(Step)> begun) { on_step_ = std::move(begun); }
  ServerReport Report() const;

 private:
  absl::Status Check(Endpoint from, const RequestHeader& request, Payload body) const;
  absl::Status CheckReplication(Endpoint from, const RequestHeader& request, Payload body) const;
  // Which shard a part is of: whose elements it has, or, if it has none, begins among. Null: of
  // none that is here.
  Shard* ShardOf(KeyRange part) const;
  void Serve(Rank worker, const RequestHeader& request, Payload body, AnswerFn answer);
  void TakeReplica(const RequestHeader& request, Payload body, AnswerFn answer);
  absl::Status Count(Shard& shard, Rank worker, const RequestHeader& request, Payload body);
  absl::Status Push(Shard& shard, Rank worker, const RequestHeader& request, Payload body);
  void Pull(Shard& shard, Rank worker, const RequestHeader& request, AnswerFn answer);
  void Pulled(Rank worker, Step step, const PullReply& reply, AnswerFn answer);
  std::shared_ptr<transport::Buffer> CopyOf(const PullReply& reply);
  void Refuse(const absl::Status& why, AnswerFn answer);

  EventLoop& loop_;
  Shard& shard_;
  Shard* standby_ = nullptr;  // of server `standby_of_`, and this one's once it is promoted
  Rank standby_of_ = -1;
  absl::AnyInvocable<void(Step)> on_step_;
  Step latest_step_ = 0;
  const int worker_count_;
  transport::BufferPool pool_;
  // Of the parameters as of `copied_version_`, by part: shared by those who read the same.
  std::map<std::pair<const std::byte*, Bytes>, std::shared_ptr<transport::Buffer>> copies_;
  std::int64_t copied_version_ = 0;
  ServerReport report_;
  bool handling_ = false;  // a request: its time is taken there, not again in what it calls
};

void Server::Core::HoldReplica(Shard& standby, Rank of) {
  RANKLAB_CHECK(standby_ == nullptr && standby.standby());
  RANKLAB_CHECK(!standby.options().range.empty() && !shard_.options().range.empty());
  standby_ = &standby;
  standby_of_ = of;
}

absl::Status Server::Core::TakeOver() {
  return standby_ == nullptr ? FailedPrecondition("there is no replica here") : standby_->Promote();
}

void Server::Core::Remove(Rank worker) {
  shard_.Remove(worker);
  if (standby_ != nullptr) {
    standby_->Remove(worker);
  }
}

Shard* Server::Core::ShardOf(KeyRange part) const {
  const auto holds = [&part](const Shard& shard) {
    const KeyRange range = shard.options().range;
    return range.Contains(part) && (!part.empty() || part.begin < range.end);
  };
  if (standby_ != nullptr && holds(*standby_)) {
    return standby_;
  }
  return standby_ == nullptr || holds(shard_) ? &shard_ : nullptr;
}

void Server::Core::Handle(Endpoint from, const RequestHeader& request, Payload body,
                          AnswerFn answer) {
  const Nanos begins = loop_.Now();
  handling_ = true;
  if (absl::Status wrong = Check(from, request, body); !wrong.ok()) {
    Refuse(wrong, std::move(answer));
  } else if (static_cast<Method>(request.method) == Method::kReplicate) {
    TakeReplica(request, body, std::move(answer));
  } else {
    Serve(from.rank, request, body, std::move(answer));
  }
  handling_ = false;
  report_.busy += loop_.Now() - begins;
}

void Server::Core::Serve(Rank worker, const RequestHeader& request, Payload body, AnswerFn answer) {
  Shard& shard = *ShardOf({request.begin, request.end});
  if (&shard == standby_) {
    if (absl::Status promoted = shard.Promote(); !promoted.ok()) {
      return Refuse(promoted, std::move(answer));
    }
  }
  if (request.step > latest_step_) {
    latest_step_ = request.step;
    if (on_step_ != nullptr) {
      on_step_(latest_step_);
    }
  }
  if (static_cast<Method>(request.method) == Method::kPull) {
    Pull(shard, worker, request, std::move(answer));
  } else if (absl::Status counted = Count(shard, worker, request, body); !counted.ok()) {
    Refuse(counted, std::move(answer));
  } else {
    answer(ReplyHeader{.clock = shard.gate().slowest_step(), .version = shard.version()}, {},
           IgnoreSent);
  }
}

void Server::Core::TakeReplica(const RequestHeader& request, Payload body, AnswerFn answer) {
  if (!request.ends_step) {
    const KeyRange part{request.begin, request.end};
    const compute::TensorView gradients{.data = const_cast<std::byte*>(body.data),
                                        .dtype = compute::DType::kFloat32,
                                        .shape = {part.size(), 1, 1, 1}};
    if (absl::Status taken = standby_->TakePart(request.step, part, gradients); !taken.ok()) {
      return Refuse(taken, std::move(answer));
    }
    report_.bytes_replicated += body.size;
    return answer(ReplyHeader{}, {}, IgnoreSent);
  }
  const absl::StatusOr<ReplicatedUpdate> update = DecodeUpdate(request, body, worker_count_);
  if (!update.ok()) {
    return Refuse(update.status(), std::move(answer));
  }
  standby_->TakeUpdate(*update, [weak = weak_from_this(),
                                 answer = std::move(answer)](const absl::Status& applied) mutable {
    const std::shared_ptr<Core> self = weak.lock();
    if (self == nullptr) {
      return;
    }
    if (applied.ok()) {
      answer(ReplyHeader{}, {}, IgnoreSent);
    } else {
      self->Refuse(applied, std::move(answer));
    }
  });
}

// A push lands among the worker's gradients at once; everything else in the transport's buffers.
Landing Server::Core::LandingFor(Endpoint from, const RequestHeader& request, Bytes size) {
  const KeyRange part{request.begin, request.end};
  if (size == 0 || static_cast<Method>(request.method) != Method::kPush ||
      !Check(from, request, Payload{nullptr, size}).ok()) {
    return {nullptr, size};
  }
  return {ShardOf(part)->LandingFor(from.rank, request.step, part), size};
}

absl::Status Server::Core::CheckReplication(Endpoint from, const RequestHeader& request,
                                            Payload body) const {
  if (standby_ == nullptr || from != Endpoint{Role::kServer, standby_of_}) {
    return InvalidArgument("an update of %s, whose replica is not here", NameOf(from));
  }
  const KeyRange part{request.begin, request.end};
  if (!standby_->options().range.Contains(part)) {
    return InvalidArgument("elements %s are not all in %s", NameOf(part),
                           NameOf(standby_->options().range));
  }
  return request.ends_step || body.size == part.size() * static_cast<Bytes>(sizeof(float))
             ? absl::OkStatus()
             : InvalidArgument("a part %s of an update in %d bytes", NameOf(part), body.size);
}

absl::Status Server::Core::Check(Endpoint from, const RequestHeader& request, Payload body) const {
  if (static_cast<Method>(request.method) == Method::kReplicate) {
    return CheckReplication(from, request, body);
  }
  if (from.role != Role::kWorker || from.rank < 0 || from.rank >= worker_count_) {
    return InvalidArgument("a request of %s; there are %d workers", NameOf(from), worker_count_);
  }
  const KeyRange part{request.begin, request.end};
  const Shard* shard = ShardOf(part);
  if (shard == nullptr || !shard->options().range.Contains(part)) {  // before any arithmetic on it
    return InvalidArgument("elements %s are not all in %s", NameOf(part),
                           NameOf(shard_.options().range));
  }
  switch (static_cast<Method>(request.method)) {
    case Method::kPush:
      return body.size == part.size() * SizeOf(shard->options().wire)
                 ? absl::OkStatus()
                 : InvalidArgument("a push of %s in %d bytes", NameOf(part), body.size);
    case Method::kPull:
    case Method::kLeave:
      return body.size == 0
                 ? absl::OkStatus()
                 : InvalidArgument("method %d with a body of %d bytes", request.method, body.size);
    case Method::kReplicate:
      break;
  }
  return InvalidArgument("method %d; 1 pushes, 2 pulls, 3 leaves, 4 replicates", request.method);
}

// What is counted once, however often it comes: pushes, the step's end, a farewell.
absl::Status Server::Core::Count(Shard& shard, Rank worker, const RequestHeader& request,
                                 Payload body) {
  absl::Status counted = static_cast<Method>(request.method) == Method::kLeave
                             ? shard.Leave(worker)
                             : Push(shard, worker, request, body);
  if (!absl::IsAlreadyExists(counted)) {
    return counted;
  }
  ++report_.duplicates;
  return absl::OkStatus();
}

// Errors: AlreadyExists, nothing of it was new.
absl::Status Server::Core::Push(Shard& shard, Rank worker, const RequestHeader& request,
                                Payload body) {
  const KeyRange part{request.begin, request.end};
  // The shard copies from the view and never writes to it.
  const compute::TensorView gradients{.data = const_cast<std::byte*>(body.data),
                                      .dtype = shard.options().wire,
                                      .shape = {part.size(), 1, 1, 1}};
  absl::Status pushed = shard.Push(worker, request.step, part, gradients);
  if (pushed.ok()) {
    ++report_.pushes;
    report_.bytes_pushed += body.size;
  }
  if (request.ends_step && (pushed.ok() || absl::IsAlreadyExists(pushed))) {
    return shard.FinishStep(worker, request.step, {request.weight, request.overflow});
  }
  return pushed;
}

void Server::Core::Pull(Shard& shard, Rank worker, const RequestHeader& request, AnswerFn answer) {
  shard.Pull(worker, request.step, {request.begin, request.end},
             [weak = weak_from_this(), worker, step = request.step,
              answer = std::move(answer)](const absl::StatusOr<PullReply>& reply) mutable {
               const std::shared_ptr<Core> self = weak.lock();
               if (self == nullptr) {
                 return;
               }
               const Nanos begins = self->loop_.Now();
               if (reply.ok()) {
                 self->Pulled(worker, step, *reply, std::move(answer));
               } else {
                 self->Refuse(reply.status(), std::move(answer));
               }
               if (!self->handling_) {
                 self->report_.busy += self->loop_.Now() - begins;
               }
             });
}

void Server::Core::Pulled(Rank worker, Step step, const PullReply& reply, AnswerFn answer) {
  const std::int64_t staleness = std::max<std::int64_t>(0, step - 1 - reply.clock);
  ++report_.staleness[static_cast<std::size_t>(worker)][staleness];
  ++report_.pulls;
  const Bytes size = reply.parameters.byte_count();
  report_.bytes_pulled += size;
  std::shared_ptr<transport::Buffer> copy = CopyOf(reply);
  const Payload body{copy->data(), size};
  answer(ReplyHeader{.clock = reply.clock, .version = reply.version, .skipped = reply.skipped},
         body, [copy = std::move(copy)](const absl::Status&) {});
}

// The next update may begin before the last byte is sent, so what is sent is a copy; but all who
// read the same version share one.
std::shared_ptr<transport::Buffer> Server::Core::CopyOf(const PullReply& reply) {
  if (copied_version_ != reply.version) {
    copies_.clear();
    copied_version_ = reply.version;
  }
  const Bytes size = reply.parameters.byte_count();
  std::shared_ptr<transport::Buffer>& copy = copies_[{reply.parameters.data, size}];
  if (copy == nullptr) {
    const auto give_back = [weak = weak_from_this()](transport::Buffer* buffer) {
      const std::unique_ptr<transport::Buffer> owned(buffer);
      if (const std::shared_ptr<Core> self = weak.lock()) {
        self->pool_.Give(std::move(*owned));
      }
    };
    copy.reset(new transport::Buffer(pool_.Take(size)), give_back);
    if (size > 0) {
      std::memcpy(copy->data(), reply.parameters.data, static_cast<std::size_t>(size));
    }
  }
  return copy;
}

void Server::Core::Refuse(const absl::Status& why, AnswerFn answer) {
  ++report_.refused;
  answer(why, {}, IgnoreSent);
}

ServerReport Server::Core::Report() const {
  ServerReport report = report_;
  const ShardCounters counters = shard_.counters();
  report.parked_pulls = counters.parked_pulls;
  report.updates = counters.updates;
  report.skipped = counters.skipped;
  report.busy += counters.busy;
  report.late_steps = counters.late_steps;
  if (standby_ != nullptr) {
    const ShardCounters standby = standby_->counters();
    report.busy += standby.busy;
    report.parked_pulls += standby.parked_pulls;
  }
  return report;
}

Server::Server(EventLoop& loop, transport::Responder& responder, Shard& shard, int worker_count)
    : core_(std::make_shared<Core>(loop, shard, worker_count)) {
  RANKLAB_CHECK(worker_count == shard.options().worker_count);
  const std::weak_ptr<Core> weak = core_;
  responder.Serve(
      [weak](Endpoint from, const RequestHeader& request, Payload body, AnswerFn answer) {
        if (const std::shared_ptr<Core> core = weak.lock()) {
          core->Handle(from, request, body, std::move(answer));
        } else {
          answer(Unavailable("the parameter server has stopped"), {}, IgnoreSent);
        }
      },
      [weak](Endpoint from, const RequestHeader& request, Bytes size) {
        const std::shared_ptr<Core> core = weak.lock();
        return core == nullptr ? Landing{nullptr, size} : core->LandingFor(from, request, size);
      });
}

Server::~Server() = default;

void Server::HoldReplica(Shard& standby, Rank of) { core_->HoldReplica(standby, of); }

absl::Status Server::TakeOver() { return core_->TakeOver(); }

void Server::Remove(Rank worker) { core_->Remove(worker); }

void Server::OnStep(absl::AnyInvocable<void(Step)> begun) { core_->OnStep(std::move(begun)); }

ServerReport Server::Report() const { return core_->Report(); }

}  // namespace ranklab::ps
