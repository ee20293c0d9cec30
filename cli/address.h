// Addresses on the command line, checked before anything is tried with them.
#pragma once

#include <string>

namespace ranklab::cli {

// What is wrong with "host:port" and what would be right; empty: nothing. IPv6 is "[::1]:7070".
std::string AddressMistake(const std::string& address);

// The same, for an address to listen on: port 0 is any free one.
std::string AddressToListenMistake(const std::string& address);

// Of "host:port".
std::string HostOf(const std::string& address);

// The host that peers are told: `advertise`, or that of `listen`; a wildcard is no address, then
// `host_name`, unless the coordinator is at this machine's loopback, and so, it seems, is
// everybody.
std::string AdvertisedHost(const std::string& advertise, const std::string& listen,
                           const std::string& coordinator, const std::string& host_name);

}  // namespace ranklab::cli
