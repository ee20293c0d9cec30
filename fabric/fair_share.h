// Max-min fair rates of flows that share links, kept up to date as flows come and go. A rate is
// fair if the flow cannot have more but by taking from one that has no more than it: each flow
// crosses a full link on which nobody is faster. Source: Bertsekas and Gallager, "Data Networks",
// 2nd ed., 1992, section 6.5; the lazy update follows Casanova et al., "Versatile, scalable, and
// accurate simulation of distributed applications and platforms" (SimGrid), JPDC 74(10), 2014.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ranklab::fabric {

class FairShare {
 public:
  using Flow = std::int32_t;

  // Bytes a second of each link, above 0 and finite.
  explicit FairShare(std::vector<double> capacities);

  // Requires: links of the constructor, each once, at least one. A flow's number is used again once
  // it has been removed.
  Flow Add(std::span<const std::int64_t> links);
  void Remove(Flow flow);
  // Requires: above 0.
  void SetCapacity(std::int64_t link, double capacity);

  double rate(Flow flow) const { return flows_[static_cast<std::size_t>(flow)].rate; }
  double capacity(std::int64_t link) const { return LinkOf(link).capacity; }
  double used(std::int64_t link) const;

  // Flows whose rates the last call computed again, itself among them, the removed one not: what
  // the laziness costs.
  std::span<const Flow> touched() const { return touched_; }

 private:
  struct Link {
    double capacity = 0;
    std::vector<Flow> flows;
    // Of a solve under way.
    double left = 0;
    std::int32_t open = 0;  // flows without a rate yet
    bool taken_in = false;
  };
  struct FlowState {
    std::vector<std::int64_t> links;
    double rate = 0;
    bool taken_in = false;
    bool open = false;
  };

  Link& LinkOf(std::int64_t link) { return links_[static_cast<std::size_t>(link)]; }
  const Link& LinkOf(std::int64_t link) const { return links_[static_cast<std::size_t>(link)]; }
  FlowState& FlowOf(Flow flow) { return flows_[static_cast<std::size_t>(flow)]; }
  bool IsFull(const Link& link) const;
  void TakeInFlowsOf(std::int64_t link);
  void TakeIn();
  void Fill();
  bool TakeInOutsiders();
  void Solve();  // from the touched flows on

  std::vector<Link> links_;
  std::vector<FlowState> flows_;
  std::vector<Flow> free_;
  std::vector<Flow> touched_;
  std::vector<std::int64_t> region_;  // links of touched flows
};

}  // namespace ranklab::fabric
