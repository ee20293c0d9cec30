// What the conductor decides, as values: the service carries them out in order.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "coordinator/membership.h"
#include "protos/coordinator.pb.h"

namespace ranklab::coordinator {

struct SendToMember {
  MemberId member = 0;
  v1::CoordinatorMessage message;
};
struct TellClient {
  v1::RunEvent event;
};
// The lab is over; the verdict was told. Last.
struct EndLab {
  int exit_code = 0;
  std::string text;
  bool dismiss_pool = false;  // every member's session ends with the exit code
};

using Action = std::variant<SendToMember, TellClient, EndLab>;
using Actions = std::vector<Action>;

inline void Send(Actions& actions, MemberId member, v1::CoordinatorMessage message) {
  actions.emplace_back(SendToMember{.member = member, .message = std::move(message)});
}
inline void Tell(Actions& actions, v1::RunEvent event) {
  actions.emplace_back(TellClient{.event = std::move(event)});
}

}  // namespace ranklab::coordinator
