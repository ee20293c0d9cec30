// What goes wrong, where, when. A scenario and a seed give the same run every time in the simulator
// and the same injections in a live cluster. One effect, one struct; how to add one: two targets
// and a section of docs/injections.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <absl/status/status.h>

#include "core/endpoint.h"
#include "core/units.h"
#include "fabric/link_model.h"

namespace ranklab::experiment {

enum class Phase : std::uint8_t { kInput, kForward, kBackward, kOptimizer, kExchange };

// Network: a link of its own between two workers, or a worker and a server, on top of their ports:
// its alpha and jitter add to the fabric's, its bandwidth (infinite where the entry gives none)
// caps it, all in modelled time. Message-level effects act in the shaped transport, byte-level ones
// (slicer, reset, corrupt) in a relay on the link.
struct ShapeLink {
  Endpoint from{};
  Endpoint to{};
  bool both_directions = false;  // "1-2", "1-ps0"; false is "1->2": only messages of `from`
  fabric::LinkSpec spec{};

  // Whose way from `self` it shapes: `to` for `from`, and the reverse where both directions are
  // meant.
  std::optional<Endpoint> WayTo(Endpoint self) const {
    if (self == from) {
      return to;
    }
    return both_directions && self == to ? std::optional(from) : std::nullopt;
  }
  // Which server's way to worker `self` it shapes. A server has no steps of its own, so the worker
  // at the other end shapes both directions, in its own steps.
  std::optional<Endpoint> WayFrom(Endpoint self) const {
    const bool at_an_end = self == to || (both_directions && self == from);
    const Endpoint other = self == to ? from : to;
    return at_an_end && other.role == Role::kServer ? std::optional(other) : std::nullopt;
  }
};
struct Partition {
  std::vector<Rank> side{};  // cut off from every rank not listed
};

// Compute.
struct SlowPhase {
  Rank rank = 0;
  Phase phase = Phase::kBackward;
  double factor = 1.0;   // times the phase's time, or
  Nanos extra{};         // added to it, in modelled time
  int rotate_every = 0;  // steps after which the next rank is the slow one; 0: always this one
};
struct Pause {
  Rank rank = 0;
  Nanos duration{};
  std::int64_t every_steps = 0;  // 0: once
};
struct Kill {
  Rank rank = 0;
};

// Correctness: what a diagnosis must find though nothing crashes.
struct SkipCollective {
  Rank rank = 0;
};
struct WrongDType {
  Rank rank = 0;
};
struct PlantNaN {
  Rank rank = 0;  // whose gradients are not numbers
};
struct OutOfMemory {
  Rank rank = 0;
  Bytes cap = 0;
};

struct Heal {};  // back to clean

struct Injection {
  Step at_step = 0;     // of the rank it hits (of the sending worker, for a link)
  Step until_step = 0;  // the last step it holds for; 0: to the end
  std::string text{};   // as asked, for the log
  std::variant<ShapeLink, Partition, SlowPhase, Pause, Kill, SkipCollective, WrongDType, PlantNaN,
               OutOfMemory, Heal>
      effect{};
};

struct Scenario {
  std::string name{};
  std::uint64_t seed = 0;
  std::vector<Injection> injections{};  // by at_step, ascending
};

// A live cluster or a simulation, as the scenario sees it.
class InjectionTarget {
 public:
  virtual ~InjectionTarget() = default;
  virtual absl::Status Inject(const Injection& injection) = 0;
};

}  // namespace ranklab::experiment
