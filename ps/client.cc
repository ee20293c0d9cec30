#include "ps/client.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include <absl/strings/str_format.h>

#include "core/check.h"
#include "core/endpoint.h"
#include "core/status.h"

namespace ranklab::ps {
namespace {

using transport::Landing;
using transport::Payload;
using transport::ReplyHeader;
using transport::RequestHeader;
using PulledDoneFn = absl::AnyInvocable<void(absl::StatusOr<Pulled>)>;

constexpr Bytes kFloatSize = sizeof(float);

enum class Verb : std::uint8_t { kPush, kEnd, kPull, kLeave };

std::string NameOf(Verb verb, Step step) {
  switch (verb) {
    case Verb::kPush:
      return absl::StrFormat("push of step %d", step);
    case Verb::kEnd:
      return absl::StrFormat("end of step %d", step);
    case Verb::kPull:
      return absl::StrFormat("pull of step %d", step);
    case Verb::kLeave:
      break;
  }
  return "leave request";
}

PulledDoneFn StatusOnly(DoneFn done) {
  return [done = std::move(done)](const absl::StatusOr<Pulled>& answers) mutable {
    done(answers.status());
  };
}

struct Message {
  Rank server = 0;
  KeyRange part;

  Bytes element = 0;

  Bytes bytes() const { return part.size() * element; }
};

// The answers to the messages of one call: done when the last is here, with the first error.
class Gathering {
 public:
  Gathering(const std::vector<Message>& messages, PulledDoneFn done, ShareFn answered)
      : done_(std::move(done)), answered_(std::move(answered)) {
    for (const Message& message : messages) {
      Awaited& of_server = awaited_[message.server];
      ++of_server.messages;
      of_server.bytes += message.bytes();
    }
  }

  void Add(Rank server, const absl::StatusOr<ReplyHeader>& reply) {
    const auto of_server = awaited_.find(server);
    RANKLAB_CHECK(of_server != awaited_.end(), "server %d owes no answer", server);
    if (!reply.ok() && first_error_.ok()) {
      first_error_ = reply.status();
    } else if (reply.ok()) {
      pulled_.clock = std::min(pulled_.clock, reply->clock);
      pulled_.version = std::min(pulled_.version, reply->version);
      pulled_.skipped = pulled_.skipped || reply->skipped;
    }
    if (--of_server->second.messages == 0) {
      const Bytes bytes = of_server->second.bytes;
      awaited_.erase(of_server);
      if (reply.ok() && answered_ != nullptr) {
        answered_({.server = server, .bytes = bytes});
      }
    }
    if (!awaited_.empty()) {
      return;
    }
    if (first_error_.ok()) {
      done_(pulled_);
    } else {
      done_(first_error_);
    }
  }

 private:
  struct Awaited {
    std::int64_t messages = 0;
    Bytes bytes = 0;
  };

  std::map<Rank, Awaited> awaited_;  // [server] that owes answers
  PulledDoneFn done_;
  ShareFn answered_;
  absl::Status first_error_;
  Pulled pulled_{.clock = std::numeric_limits<Step>::max(),
                 .version = std::numeric_limits<std::int64_t>::max()};
};

}  // namespace

class Client::Core : public std::enable_shared_from_this<Client::Core> {
 public:
  Core(transport::Requester& requester, const ClientOptions& options);

  void Push(Step step, KeyRange part, const void* gradients, PulledDoneFn done, ShareFn answered);
  void EndStep(Step step, const StepEnd& end, PulledDoneFn done);
  void Pull(Step step, KeyRange part, float* into, PulledDoneFn done, ShareFn answered);
  void Leave(PulledDoneFn done);
  std::string WaitingFor() const;

 private:
  using Request = std::tuple<Rank, Verb, Step>;

  // The first element that the server holds, with nothing of it.
  KeyRange NothingOf(Rank server) const;
  // `element`: bytes of one on the wire.
  std::vector<Message> Cut(KeyRange part, Bytes element) const;
  // Of no elements, one to each server.
  std::vector<Message> OneToEach() const;
  // The servers, beginning with the one that is this worker's first.
  std::vector<Rank> Rotation() const;
  RequestHeader HeaderFor(Method method, Step step, KeyRange part);
  void Call(Rank server, Verb verb, const RequestHeader& header, Payload body, Landing reply,
            const std::shared_ptr<Gathering>& gathering);

  transport::Requester& requester_;
  const ClientOptions options_;
  std::uint64_t next_id_ = 1;
  std::map<Request, std::int64_t> awaited_;  // messages without an answer
};

Client::Core::Core(transport::Requester& requester, const ClientOptions& options)
    : requester_(requester), options_(options) {
  RANKLAB_CHECK(!options.ranges.empty(), "a client without servers");
  RANKLAB_CHECK(options.worker >= 0, "worker %d", options.worker);
  RANKLAB_CHECK(options.message >= kFloatSize, "messages of %d bytes", options.message);
}

std::vector<Rank> Client::Core::Rotation() const {
  const auto servers = static_cast<Rank>(options_.ranges.size());
  std::vector<Rank> rotation;
  for (Rank i = 0; i < servers; ++i) {
    rotation.push_back((options_.worker + i) % servers);
  }
  return rotation;
}

std::vector<Message> Client::Core::Cut(KeyRange part, Bytes element) const {
  RANKLAB_CHECK((KeyRange{0, options_.ranges.back().end}).Contains(part), "%s of a model of %d",
                ps::NameOf(part), options_.ranges.back().end);
  const std::int64_t elements = options_.message / element;
  std::map<Rank, KeyRange> pieces;
  for (const auto& [server, piece] : Intersect(options_.ranges, part)) {
    pieces[server] = piece;
  }
  std::vector<Message> messages;
  for (const Rank server : Rotation()) {
    const KeyRange piece = pieces[server];
    for (std::int64_t begin = piece.begin; begin < piece.end; begin += elements) {
      messages.push_back({server, {begin, std::min(begin + elements, piece.end)}, element});
    }
  }
  return messages;
}

KeyRange Client::Core::NothingOf(Rank server) const {
  const std::int64_t begin = options_.ranges[static_cast<std::size_t>(server)].begin;
  return {begin, begin};
}

std::vector<Message> Client::Core::OneToEach() const {
  std::vector<Message> messages;
  for (const Rank server : Rotation()) {
    messages.push_back({server, NothingOf(server)});
  }
  return messages;
}

RequestHeader Client::Core::HeaderFor(Method method, Step step, KeyRange part) {
  return {.generation = options_.generation,
          .method = static_cast<std::uint32_t>(method),
          .id = next_id_++,
          .step = step,
          .begin = part.begin,
          .end = part.end};
}

void Client::Core::Call(Rank server, Verb verb, const RequestHeader& header, Payload body,
                        Landing reply, const std::shared_ptr<Gathering>& gathering) {
  const Request request{server, verb, header.step};
  ++awaited_[request];
  requester_.Call(
      {Role::kServer, server}, header, body, reply,
      [self = shared_from_this(), request, gathering](const absl::StatusOr<ReplyHeader>& answer) {
        if (--self->awaited_[request] == 0) {
          self->awaited_.erase(request);
        }
        if (answer.ok()) {
          gathering->Add(std::get<Rank>(request), answer);
          return;
        }
        const auto& [to, what, step] = request;
        gathering->Add(to, Annotate(answer.status(),
                                    absl::StrFormat("%s to server %d", NameOf(what, step), to)));
      });
}

void Client::Core::Push(Step step, KeyRange part, const void* gradients, PulledDoneFn done,
                        ShareFn answered) {
  const Bytes element = SizeOf(options_.wire);
  const std::vector<Message> messages = Cut(part, element);
  if (messages.empty()) {
    done(Pulled{});
    return;
  }
  const auto gathering =
      std::make_shared<Gathering>(messages, std::move(done), std::move(answered));
  for (const Message& message : messages) {
    const auto* bytes =
        static_cast<const std::byte*>(gradients) + (message.part.begin - part.begin) * element;
    Call(message.server, Verb::kPush, HeaderFor(Method::kPush, step, message.part),
         {bytes, message.bytes()}, {}, gathering);
  }
}

void Client::Core::EndStep(Step step, const StepEnd& end, PulledDoneFn done) {
  const std::vector<Message> messages = OneToEach();
  const auto gathering = std::make_shared<Gathering>(messages, std::move(done), nullptr);
  for (const auto& [server, nothing, element] : messages) {
    RequestHeader header = HeaderFor(Method::kPush, step, nothing);
    header.ends_step = true;
    header.weight = end.weight;
    header.overflow = end.overflow;
    Call(server, Verb::kEnd, header, {}, {}, gathering);
  }
}

void Client::Core::Leave(PulledDoneFn done) {
  const std::vector<Message> messages = OneToEach();
  const auto gathering = std::make_shared<Gathering>(messages, std::move(done), nullptr);
  for (const auto& [server, nothing, element] : messages) {
    const RequestHeader header = HeaderFor(Method::kLeave, 0, nothing);
    Call(server, Verb::kLeave, header, {}, {}, gathering);
  }
}

void Client::Core::Pull(Step step, KeyRange part, float* into, PulledDoneFn done,
                        ShareFn answered) {
  std::vector<Message> messages = Cut(part, kFloatSize);
  for (const Rank server : Rotation()) {
    if (options_.ranges[static_cast<std::size_t>(server)].empty()) {
      messages.push_back({server, NothingOf(server)});
    }
  }
  if (messages.empty()) {
    done(Pulled{});
    return;
  }
  const auto gathering =
      std::make_shared<Gathering>(messages, std::move(done), std::move(answered));
  for (const Message& message : messages) {
    Landing landing;
    if (!message.part.empty()) {
      landing = {reinterpret_cast<std::byte*>(into + (message.part.begin - part.begin)),
                 message.bytes()};
    }
    Call(message.server, Verb::kPull, HeaderFor(Method::kPull, step, message.part), {}, landing,
         gathering);
  }
}

std::string Client::Core::WaitingFor() const {
  std::string names;
  for (const auto& [request, count] : awaited_) {
    const auto& [server, verb, step] = request;
    names +=
        absl::StrFormat("%sserver %d (%s)", names.empty() ? "" : ", ", server, NameOf(verb, step));
  }
  return names.empty() ? "nobody" : names;
}

Client::Client(transport::Requester& requester, const ClientOptions& options)
    : core_(std::make_shared<Core>(requester, options)) {}

Client::~Client() = default;

void Client::Push(Step step, KeyRange part, const void* gradients, DoneFn done, ShareFn answered) {
  core_->Push(step, part, gradients, StatusOnly(std::move(done)), std::move(answered));
}

void Client::EndStep(Step step, StepEnd end, DoneFn done) {
  core_->EndStep(step, end, StatusOnly(std::move(done)));
}

void Client::Leave(DoneFn done) { core_->Leave(StatusOnly(std::move(done))); }

void Client::Pull(Step step, KeyRange part, float* into,
                  absl::AnyInvocable<void(absl::StatusOr<Pulled>)> done, ShareFn answered) {
  core_->Pull(step, part, into, std::move(done), std::move(answered));
}

std::string Client::WaitingFor() const { return core_->WaitingFor(); }

}  // namespace ranklab::ps
