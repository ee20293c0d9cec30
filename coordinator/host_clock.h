// What processes share with each other. Those of one machine read the same steady clock, containers
// included, and then there is nothing to align: round trips would only add their jitter. A
// container has a loopback interface of its own, though.
#pragma once

#include <string>

namespace ranklab::coordinator {

// Equal in two processes only if their steady clocks are one: the kernel's boot and the time
// namespace. Empty where the kernel does not say, which equals nobody's.
std::string HostClock();

// Equal in two processes only if 127.0.0.1 is the same place to both: the kernel's boot and the
// network namespace. Empty where the kernel does not say.
std::string HostLoopback();

}  // namespace ranklab::coordinator
