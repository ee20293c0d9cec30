// Numbers with units, as people write them in lab files and on the command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/units.h"

namespace ranklab::experiment {

// All return nothing when the text is not one: wrong or missing unit, rest behind it, out of range.

std::optional<std::int64_t> ParseInteger(std::string_view text);  // decimal, optional minus
std::optional<double> ParseNumber(std::string_view text);         // finite, decimal

// "500ms", "2.5us", "2s", "80ns", "2min"; not negative, at most 100 days.
std::optional<Nanos> ParseDuration(std::string_view text);

// "64KiB", "25MiB", "1GiB" (powers of 1024), "1KB", "1MB", "1GB" (of 1000), "512B"; whole bytes.
std::optional<Bytes> ParseSize(std::string_view text);

// Bytes or bits a second: "12.5GB/s", "100MiB/s", "10Gbit/s", "10Gbps"; above 0.
std::optional<Bandwidth> ParseBandwidth(std::string_view text);

}  // namespace ranklab::experiment
