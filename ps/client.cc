#include "ps/client.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>

#include <absl/strings/str_format.h>

#include "core/check.h"
#include "core/endpoint.h"
#include "core/status.h"
#include "ps/gathering.h"

namespace ranklab::ps {
namespace {

using transport::Landing;
using transport::Payload;
using transport::ReplyHeader;
using transport::RequestHeader;

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

}  // namespace

class Client::Core : public std::enable_shared_from_this<Client::Core> {
 public:
  Core(transport::Requester& requester, const ClientOptions& options);

  void Push(Step step, KeyRange part, const void* gradients, PulledDoneFn done, ShareFn answered);
  void EndStep(Step step, const StepEnd& end, PulledDoneFn done);
  void Pull(Step step, KeyRange part, float* into, PulledDoneFn done, ShareFn answered);
  void Leave(PulledDoneFn done);
  void Replace(Rank lost, Rank heir);
  std::string WaitingFor() const;

 private:
  using Request = std::tuple<Rank, Verb, Step>;  // of which shard

  struct Outgoing {
    Verb verb = Verb::kPush;
    RequestHeader header;
    Payload body;
    Landing reply;
    std::shared_ptr<Gathering> gathering;
    bool answered = false;  // to the caller
    int sent_to = 0;        // the home's number; 0: not yet
  };

  // Where a shard is served, and, if servers may be replaced, what was said there since its last
  // pull.
  struct Home {
    Rank server = 0;
    int number = 1;  // 2 once its server was replaced
    bool moving = false;
    std::int64_t open = 0;  // calls without an answer
    std::vector<std::shared_ptr<Outgoing>> said{};
  };

  // The first element that the server holds, with nothing of it.
  KeyRange NothingOf(Rank server) const;
  // `element`: bytes of one on the wire.
  std::vector<Message> Cut(KeyRange part, Bytes element) const;
  // Of no elements, one to each server.
  std::vector<Message> OneToEach() const;
  // The servers, beginning with the one that is this worker's first.
  std::vector<Rank> Rotation() const;
  RequestHeader HeaderFor(Method method, Step step, KeyRange part) const;
  void Call(Rank shard, Verb verb, const RequestHeader& header, Payload body, Landing reply,
            const std::shared_ptr<Gathering>& gathering);
  void Transmit(Rank shard, const std::shared_ptr<Outgoing>& message);
  void Answered(Rank shard, Outgoing& message, const absl::StatusOr<ReplyHeader>& answer);
  void SayAgain(Rank shard);
  void Forget(Step before);

  transport::Requester& requester_;
  const ClientOptions options_;
  std::uint64_t next_id_ = 1;
  std::vector<Home> homes_;                  // [shard]
  std::map<Request, std::int64_t> awaited_;  // messages without an answer
};

Client::Core::Core(transport::Requester& requester, const ClientOptions& options)
    : requester_(requester), options_(options) {
  RANKLAB_CHECK(!options.ranges.empty(), "a client without servers");
  RANKLAB_CHECK(options.worker >= 0, "worker %d", options.worker);
  RANKLAB_CHECK(options.message >= kFloatSize, "messages of %d bytes", options.message);
  for (std::size_t shard = 0; shard < options.ranges.size(); ++shard) {
    homes_.push_back({.server = static_cast<Rank>(shard)});
  }
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

RequestHeader Client::Core::HeaderFor(Method method, Step step, KeyRange part) const {
  return {.generation = options_.generation,
          .method = static_cast<std::uint32_t>(method),
          .step = step,
          .begin = part.begin,
          .end = part.end};
}

void Client::Core::Call(Rank shard, Verb verb, const RequestHeader& header, Payload body,
                        Landing reply, const std::shared_ptr<Gathering>& gathering) {
  ++awaited_[{shard, verb, header.step}];
  auto message = std::make_shared<Outgoing>(Outgoing{verb, header, body, reply, gathering});
  Home& home = homes_[static_cast<std::size_t>(shard)];
  if (options_.survives) {
    home.said.push_back(message);
  }
  if (home.moving) {
    SayAgain(shard);  // in its turn
  } else {
    Transmit(shard, message);
  }
}

void Client::Core::Transmit(Rank shard, const std::shared_ptr<Outgoing>& message) {
  Home& home = homes_[static_cast<std::size_t>(shard)];
  message->sent_to = home.number;
  message->header.id = next_id_++;
  ++home.open;
  requester_.Call(
      {Role::kServer, home.server}, message->header, message->body, message->reply,
      [self = shared_from_this(), shard, message](const absl::StatusOr<ReplyHeader>& answer) {
        self->Answered(shard, *message, answer);
      });
}

void Client::Core::Answered(Rank shard, Outgoing& message,
                            const absl::StatusOr<ReplyHeader>& answer) {
  Home& home = homes_[static_cast<std::size_t>(shard)];
  --home.open;
  const bool may_move = options_.survives && home.number == 1;
  const bool again = absl::IsUnavailable(answer.status()) &&
                     (may_move || (home.moving && message.sent_to < home.number));
  if (!again && !std::exchange(message.answered, true)) {
    const Request request{shard, message.verb, message.header.step};
    if (--awaited_[request] == 0) {
      awaited_.erase(request);
    }
    message.gathering->Add(
        shard, answer.ok()
                   ? answer
                   : absl::StatusOr<ReplyHeader>(Annotate(
                         answer.status(),
                         absl::StrFormat("%s to server %d",
                                         NameOf(message.verb, message.header.step), home.server))));
  }
  if (homes_[static_cast<std::size_t>(shard)].moving) {
    SayAgain(shard);
  }
}

void Client::Core::Replace(Rank lost, Rank heir) {
  RANKLAB_CHECK(options_.survives, "server %d is replaced", lost);
  for (Rank shard = 0; shard < static_cast<Rank>(homes_.size()); ++shard) {
    Home& home = homes_[static_cast<std::size_t>(shard)];
    if (home.server == lost && home.number == 1) {
      home.server = heir;
      home.number = 2;
      home.moving = true;
      SayAgain(shard);
    }
  }
}

// Once nothing is open: the first group of what the new home has not heard.
void Client::Core::SayAgain(Rank shard) {
  Home& home = homes_[static_cast<std::size_t>(shard)];
  if (home.open > 0) {
    return;
  }
  // What a pull has read stays as it is: somebody works with it.
  const auto unheard = [&home](const Outgoing& message) {
    return message.sent_to < home.number && !(message.verb == Verb::kPull && message.answered);
  };
  const auto group_of = [](Verb verb) {
    return verb == Verb::kPush ? 0 : verb == Verb::kPull ? 2 : 1;
  };
  int first = 3;
  for (const auto& message : home.said) {
    if (unheard(*message)) {
      first = std::min(first, group_of(message->verb));
    }
  }
  home.moving = first < 3;
  for (const auto& message : std::vector(home.said)) {
    if (unheard(*message) && group_of(message->verb) == first) {
      Transmit(shard, message);
    }
  }
}

// What was read in a later step is behind every server's acknowledgement.
void Client::Core::Forget(Step before) {
  for (Home& home : homes_) {
    std::erase_if(home.said, [before](const std::shared_ptr<Outgoing>& message) {
      return message->answered && message->verb != Verb::kLeave &&
             (message->verb == Verb::kPull || message->header.step < before);
    });
  }
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
    Call(message.shard, Verb::kPush, HeaderFor(Method::kPush, step, message.part),
         {bytes, message.bytes()}, {}, gathering);
  }
}

void Client::Core::EndStep(Step step, const StepEnd& end, PulledDoneFn done) {
  const std::vector<Message> messages = OneToEach();
  const auto gathering = std::make_shared<Gathering>(messages, std::move(done), nullptr);
  for (const auto& [shard, nothing, element] : messages) {
    RequestHeader header = HeaderFor(Method::kPush, step, nothing);
    header.ends_step = true;
    header.weight = end.weight;
    header.overflow = end.overflow;
    Call(shard, Verb::kEnd, header, {}, {}, gathering);
  }
}

void Client::Core::Leave(PulledDoneFn done) {
  const std::vector<Message> messages = OneToEach();
  const auto gathering = std::make_shared<Gathering>(messages, std::move(done), nullptr);
  for (const auto& [shard, nothing, element] : messages) {
    const RequestHeader header = HeaderFor(Method::kLeave, 0, nothing);
    Call(shard, Verb::kLeave, header, {}, {}, gathering);
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
  const bool whole = part == KeyRange{0, options_.ranges.back().end};
  const auto gathering = std::make_shared<Gathering>(
      messages,
      [self = shared_from_this(), step, whole,
       done = std::move(done)](absl::StatusOr<Pulled> pulled) mutable {
        if (whole && pulled.ok()) {
          self->Forget(step);
        }
        done(std::move(pulled));
      },
      std::move(answered));
  for (const Message& message : messages) {
    Landing landing;
    if (!message.part.empty()) {
      landing = {reinterpret_cast<std::byte*>(into + (message.part.begin - part.begin)),
                 message.bytes()};
    }
    Call(message.shard, Verb::kPull, HeaderFor(Method::kPull, step, message.part), {}, landing,
         gathering);
  }
}

std::string Client::Core::WaitingFor() const {
  std::string names;
  for (const auto& [request, count] : awaited_) {
    const auto& [shard, verb, step] = request;
    names += absl::StrFormat("%sserver %d (%s)", names.empty() ? "" : ", ",
                             homes_[static_cast<std::size_t>(shard)].server, NameOf(verb, step));
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

void Client::Replace(Rank lost, Rank heir) { core_->Replace(lost, heir); }

std::string Client::WaitingFor() const { return core_->WaitingFor(); }

}  // namespace ranklab::ps
