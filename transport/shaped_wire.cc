#include "transport/shaped_wire.h"

#include <utility>

#include "core/status.h"
#include "transport/arrivals.h"
#include "transport/departures.h"
#include "transport/shape_clock.h"

namespace ranklab::transport {

class ShapedWire::Core {
 public:
  Core(EventLoop& loop, std::unique_ptr<Wire> wire, const ShapeOptions& options)
      : clock(loop, options.clock_offset),
        inner(std::move(wire)),
        departures(clock, *inner, options.port, options.seed),
        arrivals(clock, options.port, options.seed) {}

  ShapeClock clock;
  std::unique_ptr<Wire> inner;
  Departures departures;
  Arrivals arrivals;
};

ShapedWire::ShapedWire(EventLoop& loop, std::unique_ptr<Wire> inner, const ShapeOptions& options)
    : core_(std::make_shared<Core>(loop, std::move(inner), options)) {
  core_->clock.OwnedBy(core_);
}

ShapedWire::~ShapedWire() {
  core_->departures.Stop(Aborted("%s: the wire was closed", NameOf(self())));
  core_->arrivals.Stop();
}

Endpoint ShapedWire::self() const { return core_->inner->self(); }

void ShapedWire::Deliver(WireSink& sink) {
  core_->arrivals.DeliverTo(sink);
  core_->inner->Deliver(core_->arrivals);
}

void ShapedWire::Send(Endpoint to, const MessageHeader& header, Payload body, DoneFn sent) {
  if (IsControl(header.kind)) {
    core_->inner->Send(to, header, body, std::move(sent));
    return;
  }
  core_->departures.Send(to, header, body, std::move(sent));
}

void ShapedWire::Abort(absl::Status reason) {
  core_->departures.Stop(reason);
  core_->arrivals.Stop();
  core_->inner->Abort(std::move(reason));
}

WireCounters ShapedWire::counters(Endpoint peer) const { return core_->inner->counters(peer); }

void ShapedWire::ShapeLink(Endpoint peer, const fabric::LinkSpec& spec) {
  core_->departures.links().Shape(peer, spec);
}

void ShapedWire::ShapeLinkFrom(Endpoint peer, const fabric::LinkSpec& spec) {
  core_->arrivals.links().Shape(peer, spec);
}

void ShapedWire::ResetLinks() {
  core_->departures.links().Reset();
  core_->arrivals.links().Reset();
}

ShapeReport ShapedWire::Report() const { return core_->arrivals.Report(); }

}  // namespace ranklab::transport
