// An injection that somebody sends into the running cell. What describes the modelled cluster is in
// modelled time, so a long wall time may hide in a few letters: both are said, and more than a
// minute is refused unless asked for. Pure.
#pragma once

#include <string>

#include <absl/status/statusor.h>

#include "core/units.h"
#include "protos/coordinator.pb.h"

namespace ranklab::coordinator {

struct LiveInjection {
  std::string text;         // one entry of a scenario, for the members
  std::string description;  // "500 ms modelled = 50 s here"
};

// The cell that it is for.
struct InjectedCell {
  int workers = 0;
  int servers = 0;  // 0 without a parameter server
  double time_scale = 1.0;
};

// Errors: InvalidArgument, not an entry of a scenario, a rank or a server that the cell does not
// have, a link that it does not use, or more than 60 s of wall time without request.wall().
absl::StatusOr<LiveInjection> PrepareInjection(const v1::InjectRequest& request,
                                               const InjectedCell& cell);

// "500 ms", "2.5 s", "10 us".
std::string TextOf(Nanos duration);

}  // namespace ranklab::coordinator
