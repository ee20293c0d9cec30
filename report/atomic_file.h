// Files that are either whole or not there.
#pragma once

#include <string>
#include <string_view>

#include <absl/status/status.h>

namespace ranklab::report {

// Writes to a temporary name in the same folder, syncs, renames: a reader, and a machine that lost
// its power, sees the old text or the new one. Errors: Unavailable, path and the system's reason.
absl::Status WriteWhole(const std::string& path, std::string_view text);

// Adds to the end of a file, made when it is missing; written before the call returns.
// Errors: as above.
absl::Status Append(const std::string& path, std::string_view text);

}  // namespace ranklab::report
