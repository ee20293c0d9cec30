#include "transport/arrivals.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/status.h"

namespace ranklab::transport {
namespace {

// Alpha, jitter and loss are the sender's side's: the same seed then gives the same delays, in
// whatever order messages come here.
fabric::LinkSpec ReceivingPort(const fabric::LinkSpec& port) {
  return {.bandwidth = port.bandwidth};
}

bool LimitsNothing(const fabric::LinkSpec& spec) {
  return spec.alpha == Nanos(0) && std::isinf(spec.bandwidth.bytes_per_second) &&
         spec.jitter == Nanos(0) && spec.loss_probability == 0;
}

}  // namespace

Arrivals::Arrivals(ShapeClock& clock, const fabric::LinkSpec& port, std::uint64_t seed)
    : clock_(clock),
      alpha_(port.alpha),
      unlimited_(LimitsNothing(port)),
      port_(ReceivingPort(port), seed),
      links_(~seed),  // not the streams of the departures
      meter_(port, seed) {}

Nanos Arrivals::Reaches(Nanos departs) const {
  return departs > Nanos::max() - alpha_ ? Nanos::max() : departs + alpha_;
}

bool Arrivals::PassesAtOnce(Endpoint from, const MessageHeader& header) {
  const fabric::LinkModel* link = links_.Find(from);
  return unlimited_ && header.due == header.departs &&
         (link == nullptr || LimitsNothing(link->spec()));
}

absl::StatusOr<WireSink::Acceptance> Arrivals::Accept(Endpoint from, const MessageHeader& header) {
  RANKLAB_CHECK(sink_ != nullptr, "Deliver comes first");
  if (header.departs < Nanos(0) || header.due < header.departs) {
    return InvalidArgument("%s: a message that departs at %d ns and is due at %d ns", NameOf(from),
                           header.departs.count(), header.due.count());
  }
  absl::StatusOr<Acceptance> accepted = sink_->Accept(from, header);
  if (!accepted.ok() || IsControl(header.kind)) {
    return accepted;
  }
  Peer& peer = peers_[from];
  const std::uint64_t number = peer.first + peer.inbound.size();
  peer.inbound.push_back({.header = header, .token = accepted->token});
  if (PassesAtOnce(from, header)) {
    Inbound& inbound = peer.inbound.back();
    inbound.modelled = false;
    inbound.admitted = true;
    inbound.arrives = peer.last_arrives;  // behind what an injected link delays
  } else {
    waiting_.emplace(Turn{header.departs, from, number}, &peer.inbound.back());
    ArmAdmission();
  }
  return Acceptance{.landing = accepted->landing, .token = number};
}

void Arrivals::Arrived(Endpoint from, const MessageHeader& header, std::uint64_t token) {
  if (IsControl(header.kind)) {
    sink_->Arrived(from, header, token);
    return;
  }
  Peer& peer = peers_[from];
  RANKLAB_CHECK(token >= peer.first && token - peer.first < peer.inbound.size());
  Inbound& inbound = peer.inbound[token - peer.first];
  inbound.complete = true;
  inbound.completed = clock_.Now();
  DeliverDue(from);
}

// Waits until the first byte of the earliest message would reach the port: by then the headers of
// those that departed before it are here, if this machine is faster than the modelled network.
void Arrivals::ArmAdmission() {
  if (waiting_.empty()) {
    clock_.Cancel(admission_timer_);
    return;
  }
  const Nanos at = Reaches(std::get<Nanos>(waiting_.begin()->first));
  if (admission_timer_ != TimerId::kNone && admission_at_ == at) {
    return;
  }
  clock_.Cancel(admission_timer_);
  admission_at_ = at;
  admission_timer_ = clock_.RunAt(at, [this] {
    admission_timer_ = TimerId::kNone;
    AdmitDue();
  });
}

void Arrivals::AdmitDue() {
  std::vector<Endpoint> admitted;
  while (!waiting_.empty()) {
    const auto first = waiting_.begin();
    const auto& [departs, from, number] = first->first;
    if (Reaches(departs) > clock_.Now()) {
      break;
    }
    Admit(from, *first->second);
    admitted.push_back(from);
    waiting_.erase(first);
  }
  ArmAdmission();
  for (const Endpoint from : admitted) {
    DeliverDue(from);
  }
}

// What the link adds to a message's way counts as if its sender had added it.
fabric::Passage Arrivals::Cross(Endpoint from, const MessageHeader& header) {
  const std::array<fabric::LinkModel*, 1> port = {&port_};
  const std::array<fabric::LinkModel*, 1> link = {links_.Find(from)};
  const Nanos reaches = Reaches(header.departs);
  if (link[0] == nullptr) {
    return fabric::Path::Arrive(reaches, header.due, header.size, port);
  }
  const fabric::Passage before = fabric::Path::Depart(reaches, header.size, link);
  const Nanos delay = before.arrives - before.leaves;
  const Nanos due = header.due > Nanos::max() - delay ? Nanos::max() : header.due + delay;
  return fabric::Path::Arrive(before.starts, std::max(due, before.arrives), header.size, port);
}

void Arrivals::Admit(Endpoint from, Inbound& inbound) {
  const fabric::Passage passage = Cross(from, inbound.header);
  Peer& peer = peers_[from];
  inbound.begins = passage.starts;
  inbound.arrives = std::max(passage.arrives, peer.last_arrives);
  inbound.admitted = true;
  peer.last_arrives = inbound.arrives;
}

void Arrivals::DeliverDue(Endpoint from) {
  const std::shared_ptr<void> alive = clock_.owner().lock();  // the sink may close the wire
  Peer& peer = peers_[from];
  while (!stopped_ && !peer.inbound.empty()) {
    const Inbound& front = peer.inbound.front();
    if (!front.admitted || !front.complete) {
      return;
    }
    if (front.arrives > clock_.Now()) {
      if (peer.timer == TimerId::kNone) {
        peer.timer = clock_.RunAt(front.arrives, [this, from] {
          peers_[from].timer = TimerId::kNone;
          DeliverDue(from);
        });
      }
      return;
    }
    const Inbound inbound = std::move(peer.inbound.front());
    peer.inbound.pop_front();
    ++peer.first;
    DeliverOne(from, inbound);
  }
  if (!stopped_ && peer.lost) {
    ReportLoss(from);
  }
}

void Arrivals::DeliverOne(Endpoint from, const Inbound& inbound) {
  if (!inbound.modelled) {
    sink_->Arrived(from, inbound.header, inbound.token);
    return;
  }
  meter_.Record({.size = inbound.header.size,
                 .departs = inbound.header.departs,
                 .begins = inbound.begins,
                 .arrives = inbound.arrives,
                 .completed = inbound.completed,
                 .delivered = clock_.Now(),
                 .forgiven = clock_.Forgiven(inbound.arrives)});
  clock_.RunDue(inbound.arrives, [&] { sink_->Arrived(from, inbound.header, inbound.token); });
}

void Arrivals::Lost(Endpoint from, absl::Status why) {
  if (stopped_) {
    return;
  }
  Peer& peer = peers_[from];
  peer.lost = std::move(why);
  const auto incomplete = std::find_if(peer.inbound.begin(), peer.inbound.end(),
                                       [](const Inbound& inbound) { return !inbound.complete; });
  DropFrom(from, static_cast<std::size_t>(incomplete - peer.inbound.begin()));
  if (peer.inbound.empty()) {
    ReportLoss(from);
    return;
  }
  peer.loss_timer = clock_.RunAt(clock_.Now() + kLossWaits, [this, from] {
    peers_[from].loss_timer = TimerId::kNone;
    ReportLoss(from);
  });
}

void Arrivals::DropFrom(Endpoint from, std::size_t kept) {
  Peer& peer = peers_[from];
  for (std::size_t i = kept; i < peer.inbound.size(); ++i) {
    waiting_.erase(Turn{peer.inbound[i].header.departs, from, peer.first + i});
  }
  peer.inbound.resize(kept);
  ArmAdmission();
}

void Arrivals::ReportLoss(Endpoint from) {
  Peer& peer = peers_[from];
  DropFrom(from, 0);
  clock_.Cancel(peer.timer);
  clock_.Cancel(peer.loss_timer);
  const absl::Status why = *std::exchange(peer.lost, std::nullopt);
  sink_->Lost(from, why);
}

void Arrivals::Stop() {
  stopped_ = true;
  waiting_.clear();
  clock_.Cancel(admission_timer_);
  for (auto& [endpoint, peer] : peers_) {
    clock_.Cancel(peer.timer);
    clock_.Cancel(peer.loss_timer);
    peer.inbound.clear();
  }
}

}  // namespace ranklab::transport
