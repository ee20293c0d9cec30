// The rows of one `ranklab collective`: which trials its flags ask for.
#pragma once

#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "cli/collective/trial.h"

namespace ranklab::cli {

// nccl-tests' options and defaults, where it has them.
struct SweepOptions {
  int ranks = 2;
  std::string collective = "all_reduce";
  std::string algorithm{};      // empty: the catalog's first for the collective; "all"
  std::string dtype = "float";  // or "all"
  std::string op = "sum";       // or "all"
  Bytes min_bytes = 32 << 20;
  Bytes max_bytes = 32 << 20;
  Bytes step_bytes = 1 << 20;
  int step_factor = 0;  // above 1: sizes are multiplied instead of added to
  int warmup = 1;
  int iterations = 20;
  int repeats = 1;  // of each row, all contestants in turn; the median counts
  int check = 1;
  Rank root = 0;
  int chunks = 0;
};

// By algorithm, then type, then operation, then size; all out of place. Sizes are rounded down as
// nccl-tests does: to whole elements, and where each rank has a block, to blocks of a multiple of
// 16 bytes. Errors: InvalidArgument, a name or a range that is wrong, with what would be right.
absl::StatusOr<std::vector<Trial>> TrialsOf(const SweepOptions& options);

}  // namespace ranklab::cli
