#include "transport/calls.h"

#include <utility>

#include "core/check.h"
#include "core/status.h"

namespace ranklab::transport {

absl::Status Calls::Begin(std::uint64_t id, Landing reply, AnsweredFn& done) {
  const auto [call, added] = pending_.try_emplace(id);
  if (!added) {
    return FailedPrecondition("request %d is still pending", id);
  }
  call->second.reply = reply;
  call->second.done = std::move(done);
  return absl::OkStatus();
}

bool Calls::Waits(std::uint64_t id) const {
  const auto call = pending_.find(id);
  return call != pending_.end() && !call->second.answer;
}

Landing Calls::LandingFor(const MessageHeader& reply) const {
  const auto call = pending_.find(reply.request.id);
  const bool wanted = call != pending_.end() && !call->second.answer && reply.status == 0 &&
                      call->second.reply.size == reply.size;
  return wanted ? call->second.reply : Landing{nullptr, reply.size};
}

std::optional<AnsweredCall> Calls::Sent(std::uint64_t id, const absl::Status& status) {
  const auto call = pending_.find(id);
  RANKLAB_CHECK(call != pending_.end() && !call->second.sent, "request %d", id);
  call->second.sent = true;
  if (!status.ok() && !call->second.answer) {
    call->second.answer = status;
  }
  return TakeIfEnded(call);
}

std::optional<AnsweredCall> Calls::Answered(const MessageHeader& reply) {
  const auto call = pending_.find(reply.request.id);
  RANKLAB_CHECK(call != pending_.end() && !call->second.answer, "request %d", reply.request.id);
  if (reply.status != 0) {
    call->second.answer = absl::Status(static_cast<absl::StatusCode>(reply.status), reply.error);
  } else if (reply.size != call->second.reply.size) {
    call->second.answer = InvalidArgument("the answer has %d bytes, the call expects %d",
                                          reply.size, call->second.reply.size);
  } else {
    call->second.answer = reply.reply;
  }
  return TakeIfEnded(call);
}

std::vector<AnsweredCall> Calls::End(const absl::Status& why) {
  std::vector<AnsweredCall> ended;
  for (auto call = pending_.begin(); call != pending_.end();) {
    if (!call->second.answer) {
      call->second.answer = why;
    }
    if (auto taken = TakeIfEnded(call++)) {
      ended.push_back(*std::move(taken));
    }
  }
  return ended;
}

std::optional<AnsweredCall> Calls::TakeIfEnded(Table::iterator call) {
  if (!call->second.sent || !call->second.answer) {
    return std::nullopt;
  }
  AnsweredCall ended{std::move(call->second.done), *std::move(call->second.answer)};
  pending_.erase(call);
  return ended;
}

}  // namespace ranklab::transport
