// Which steady clock a process reads. Processes of one machine read the same one, containers
// included, and then there is nothing to align: round trips would only add their jitter.
#pragma once

#include <string>

namespace ranklab::coordinator {

// Equal in two processes only if their steady clocks are one: the kernel's boot and the time
// namespace. Empty where the kernel does not say, which equals nobody's.
std::string HostClock();

}  // namespace ranklab::coordinator
