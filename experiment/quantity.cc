#include "experiment/quantity.h"

#include <charconv>
#include <cmath>
#include <span>

namespace ranklab::experiment {
namespace {

struct Unit {
  std::string_view name;
  double scale;
};

constexpr Unit kDurations[] = {
    {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9},
};
constexpr Unit kSizes[] = {
    {"B", 1},
    {"KB", 1e3},
    {"MB", 1e6},
    {"GB", 1e9},
    {"KiB", 1024},
    {"MiB", 1024 * 1024},
    {"GiB", 1024.0 * 1024 * 1024},
};
constexpr Unit kBitRates[] = {
    {"kbit/s", 1e3 / 8}, {"Mbit/s", 1e6 / 8}, {"Gbit/s", 1e9 / 8},
    {"kbps", 1e3 / 8},   {"Mbps", 1e6 / 8},   {"Gbps", 1e9 / 8},
};

// A number and the unit behind it, with or without a blank between.
std::optional<double> ParseWithUnit(std::string_view text, std::span<const Unit> units) {
  const std::size_t end = text.find_first_not_of("0123456789.");
  if (end == std::string_view::npos) {
    return std::nullopt;
  }
  const std::optional<double> number = ParseNumber(text.substr(0, end));
  std::string_view name = text.substr(end);
  if (name.starts_with(' ')) {
    name.remove_prefix(1);
  }
  for (const Unit& unit : units) {
    if (number && name == unit.name) {
      return *number * unit.scale;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> ParseInteger(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) {
    return std::nullopt;
  }
  return value;
}

std::optional<double> ParseNumber(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty() ||
      !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

std::optional<Nanos> ParseDuration(std::string_view text) {
  constexpr double kMost = 100.0 * 86400e9;
  const std::optional<double> nanos = ParseWithUnit(text, kDurations);
  if (!nanos || *nanos > kMost) {
    return std::nullopt;
  }
  return Nanos(std::llround(*nanos));
}

std::optional<Bytes> ParseSize(std::string_view text) {
  constexpr double kMost = 0x1p53;  // the last whole number that a double has
  const std::optional<double> bytes = ParseWithUnit(text, kSizes);
  if (!bytes || *bytes > kMost || *bytes != std::floor(*bytes)) {
    return std::nullopt;
  }
  return static_cast<Bytes>(*bytes);
}

std::optional<Bandwidth> ParseBandwidth(std::string_view text) {
  std::optional<double> rate = ParseWithUnit(text, kBitRates);
  if (!rate && text.ends_with("/s")) {
    rate = ParseWithUnit(text.substr(0, text.size() - 2), kSizes);
  }
  if (!rate || *rate <= 0) {
    return std::nullopt;
  }
  return Bandwidth{*rate};
}

}  // namespace ranklab::experiment
