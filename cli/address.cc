#include "cli/address.h"

#include <charconv>
#include <string_view>

#include <absl/strings/str_format.h>

namespace ranklab::cli {
namespace {

std::string Mistake(const std::string& address, int least_port) {
  // "[::1]" is a host: its colons are not a port's.
  const std::size_t colon = address.ends_with(']') ? std::string::npos : address.rfind(':');
  const std::string host = address.substr(0, colon);
  const bool bare_ipv6 = host.find(':') != std::string::npos && host.front() != '[';
  const std::string_view port =
      colon == std::string::npos ? "" : std::string_view(address).substr(colon + 1);
  int number = -1;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (!host.empty() && !bare_ipv6 && error == std::errc() && end == port.data() + port.size() &&
      number >= least_port && number <= 65535) {
    return "";
  }
  return absl::StrFormat(
      "\"%s\" is no address; HOST:PORT with a port from %d to 65535, such as %s", address,
      least_port,
      bare_ipv6 ? "[" + address + "]:7070" : (host.empty() ? "127.0.0.1" : host) + ":7070");
}

}  // namespace

std::string AddressMistake(const std::string& address) { return Mistake(address, 1); }
std::string AddressToListenMistake(const std::string& address) { return Mistake(address, 0); }

std::string HostOf(const std::string& address) { return address.substr(0, address.rfind(':')); }

std::string AdvertisedHost(const std::string& advertise, const std::string& listen,
                           const std::string& coordinator, const std::string& host_name) {
  if (!advertise.empty()) {
    return advertise;
  }
  const std::string host = HostOf(listen);
  if (host != "0.0.0.0" && host != "[::]") {
    return host;
  }
  const std::string at = HostOf(coordinator);
  const bool all_here = at == "localhost" || at == "[::1]" || at.starts_with("127.");
  return all_here ? "127.0.0.1" : host_name;
}

}  // namespace ranklab::cli
