#include "transport/departures.h"

#include <array>
#include <span>
#include <utility>

#include "core/check.h"
#include "core/random.h"

namespace ranklab::transport {
namespace {

std::uint64_t SeedOf(Endpoint self, std::uint64_t seed) {
  return Random(seed).Split(StreamOf(self)).Next();
}

}  // namespace

Departures::Departures(ShapeClock& clock, Wire& inner, const fabric::LinkSpec& port,
                       std::uint64_t seed)
    : clock_(clock),
      inner_(inner),
      port_(port, SeedOf(inner.self(), seed)),
      links_(SeedOf(inner.self(), seed)) {}

void Departures::Send(Endpoint to, MessageHeader header, Payload body, DoneFn sent) {
  RANKLAB_CHECK(header.size == body.size);
  if (!stopped_.ok()) {
    EndLater(std::move(sent));
    return;
  }
  Peer& peer = peers_[to];
  const std::array<fabric::LinkModel*, 2> path = {&port_, links_.Find(to)};
  const fabric::Passage passage = fabric::Path::Depart(
      clock_.ProgramNow(), body.size, std::span(path).first(path[1] != nullptr ? 2 : 1));
  header.departs = passage.starts;
  header.due = passage.arrives;
  peer.held.push_back({.starts = passage.starts,
                       .leaves = passage.leaves,
                       .header = std::move(header),
                       .body = body,
                       .sent = std::move(sent)});
  Release(to);
}

void Departures::Release(Endpoint to) {
  Peer& peer = peers_[to];
  while (!peer.held.empty() && peer.held.front().starts <= clock_.Now()) {
    Held held = std::move(peer.held.front());
    peer.held.pop_front();
    HandOver(to, std::move(held));
  }
  if (!peer.held.empty() && peer.timer == TimerId::kNone) {
    peer.timer = clock_.RunAt(peer.held.front().starts, [this, to] {
      peers_[to].timer = TimerId::kNone;
      Release(to);
    });
  }
}

void Departures::HandOver(Endpoint to, Held held) {
  inner_.Send(to, held.header, held.body,
              [this, owner = clock_.owner(), leaves = held.leaves,
               sent = std::move(held.sent)](absl::Status status) mutable {
                if (const std::shared_ptr<void> alive = owner.lock()) {
                  HandedOver(std::move(status), leaves, std::move(sent));
                } else {
                  sent(std::move(status));
                }
              });
}

void Departures::HandedOver(absl::Status status, Nanos leaves, DoneFn sent) {
  if (!stopped_.ok()) {
    sent(stopped_);
    return;
  }
  if (!status.ok()) {
    sent(std::move(status));
    return;
  }
  if (leaves <= clock_.Now()) {
    clock_.RunDue(leaves, [&sent] { sent(absl::OkStatus()); });
    return;
  }
  const std::uint64_t number = next_leaving_++;
  const TimerId timer =
      clock_.RunAt(leaves, [this, number, leaves] { FinishLeaving(number, leaves); });
  leaving_.emplace(number, Leaving{.timer = timer, .sent = std::move(sent)});
}

void Departures::FinishLeaving(std::uint64_t number, Nanos leaves) {
  const auto found = leaving_.find(number);
  RANKLAB_CHECK(found != leaving_.end());
  DoneFn sent = std::move(found->second.sent);
  leaving_.erase(found);
  clock_.RunDue(leaves, [&sent] { sent(absl::OkStatus()); });
}

// Not inline: whoever stops the wire is not in the middle of a callback of its own send.
void Departures::EndLater(DoneFn sent) {
  clock_.Post([sent = std::move(sent), reason = stopped_]() mutable { sent(reason); });
}

void Departures::Stop(absl::Status reason) {
  RANKLAB_CHECK(!reason.ok());
  if (!stopped_.ok()) {
    return;
  }
  stopped_ = std::move(reason);
  for (auto& [endpoint, peer] : peers_) {
    clock_.Cancel(peer.timer);
    for (Held& held : peer.held) {
      EndLater(std::move(held.sent));
    }
    peer.held.clear();
  }
  for (auto& [number, leaving] : leaving_) {
    clock_.Cancel(leaving.timer);
    EndLater(std::move(leaving.sent));
  }
  leaving_.clear();
}

}  // namespace ranklab::transport
