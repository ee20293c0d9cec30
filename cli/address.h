// Addresses on the command line, checked before anything is tried with them.
#pragma once

#include <string>

namespace ranklab::cli {

// What is wrong with "host:port" and what would be right; empty: nothing. IPv6 is "[::1]:7070".
std::string AddressMistake(const std::string& address);

// The same, for an address to listen on: port 0 is any free one.
std::string AddressToListenMistake(const std::string& address);

}  // namespace ranklab::cli
