#include "fabric/fair_share.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/check.h"

namespace ranklab::fabric {
namespace {

// Of a capacity: sums of rates that are full differ from it by rounding.
constexpr double kRounding = 1e-9;

}  // namespace

FairShare::FairShare(std::vector<double> capacities) : links_(capacities.size()) {
  for (std::size_t i = 0; i < capacities.size(); ++i) {
    RANKLAB_CHECK(capacities[i] > 0 && std::isfinite(capacities[i]));
    links_[i].capacity = capacities[i];
  }
}

double FairShare::used(std::int64_t link) const {
  double used = 0;
  for (const Flow flow : LinkOf(link).flows) {
    used += rate(flow);
  }
  return used;
}

bool FairShare::IsFull(const Link& link) const {
  double used = 0;
  for (const Flow flow : link.flows) {
    used += rate(flow);
  }
  return used >= link.capacity * (1 - kRounding);
}

FairShare::Flow FairShare::Add(std::span<const std::int64_t> links) {
  RANKLAB_CHECK(!links.empty());
  Flow flow = static_cast<Flow>(flows_.size());
  if (free_.empty()) {
    flows_.emplace_back();
  } else {
    flow = free_.back();
    free_.pop_back();
  }
  FlowOf(flow).links.assign(links.begin(), links.end());
  FlowOf(flow).rate = 0;
  for (const std::int64_t link : links) {
    LinkOf(link).flows.push_back(flow);
  }
  touched_ = {flow};
  FlowOf(flow).taken_in = true;
  Solve();
  return flow;
}

void FairShare::Remove(Flow flow) {
  const std::vector<std::int64_t> links = std::exchange(FlowOf(flow).links, {});
  RANKLAB_CHECK(!links.empty(), "flow %d is there", flow);
  touched_.clear();
  for (const std::int64_t link : links) {
    const bool was_full = IsFull(LinkOf(link));
    std::vector<Flow>& flows = LinkOf(link).flows;
    flows.erase(std::find(flows.begin(), flows.end(), flow));
    if (was_full) {  // only there anybody gains
      TakeInFlowsOf(link);
    }
  }
  free_.push_back(flow);
  Solve();
}

void FairShare::SetCapacity(std::int64_t link, double capacity) {
  RANKLAB_CHECK(capacity > 0 && std::isfinite(capacity));
  LinkOf(link).capacity = capacity;
  touched_.clear();
  TakeInFlowsOf(link);
  Solve();
}

void FairShare::TakeInFlowsOf(std::int64_t link) {
  for (const Flow flow : LinkOf(link).flows) {
    if (!std::exchange(FlowOf(flow).taken_in, true)) {
      touched_.push_back(flow);
    }
  }
}

// From flow to flow over full links: through others nobody feels anybody. Then the region is all
// links of those flows.
void FairShare::TakeIn() {
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    for (const std::int64_t link : FlowOf(touched_[i]).links) {
      if (!std::exchange(LinkOf(link).taken_in, true)) {
        region_.push_back(link);
        if (IsFull(LinkOf(link))) {
          TakeInFlowsOf(link);
        }
      }
    }
  }
}

// Progressive filling of the touched flows: the link that gives the least to each of its flows
// fixes them at that; the others share what is left.
void FairShare::Fill() {
  for (const std::int64_t id : region_) {
    Link& link = LinkOf(id);
    link.left = link.capacity;
    link.open = 0;
    for (const Flow flow : link.flows) {
      if (FlowOf(flow).taken_in) {
        ++link.open;
      } else {
        link.left -= rate(flow);
      }
    }
  }
  for (const Flow flow : touched_) {
    FlowOf(flow).open = true;
  }
  for (std::size_t open = touched_.size(); open > 0;) {
    const Link* tightest = nullptr;
    for (const std::int64_t id : region_) {
      const Link& link = LinkOf(id);
      if (link.open > 0 &&
          (tightest == nullptr || link.left * tightest->open < tightest->left * link.open)) {
        tightest = &link;
      }
    }
    RANKLAB_CHECK(tightest != nullptr, "every open flow crosses a link of the region");
    const double share = std::max(tightest->left, 0.0) / tightest->open;
    for (const Flow flow : tightest->flows) {
      FlowState& state = FlowOf(flow);
      if (!std::exchange(state.open, false)) {
        continue;
      }
      state.rate = share;
      --open;
      for (const std::int64_t id : state.links) {
        LinkOf(id).left -= share;
        --LinkOf(id).open;
      }
    }
  }
}

// A link that only now is full may have flows outside that are faster than those within.
bool FairShare::TakeInOutsiders() {
  const std::size_t before = touched_.size();
  for (const std::int64_t link : region_) {
    if (IsFull(LinkOf(link))) {
      TakeInFlowsOf(link);
    }
  }
  return touched_.size() > before;
}

void FairShare::Solve() {
  region_.clear();
  do {
    TakeIn();
    Fill();
  } while (TakeInOutsiders());
  for (const Flow flow : touched_) {
    FlowOf(flow).taken_in = false;
  }
  for (const std::int64_t link : region_) {
    LinkOf(link).taken_in = false;
  }
}

}  // namespace ranklab::fabric
