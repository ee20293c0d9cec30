#include "cli/launch_environment.h"

#include <charconv>
#include <cstring>

#include "core/status.h"

namespace ranklab::cli {
namespace {

constexpr const char* kRankVariables[] = {"RANK",     "SLURM_PROCID", "OMPI_COMM_WORLD_RANK",
                                          "PMI_RANK", "PMIX_RANK",    "JOB_COMPLETION_INDEX"};

absl::StatusOr<Rank> ParseRank(const char* name, const char* value) {
  Rank rank = -1;
  const char* end = value + std::strlen(value);
  const auto parsed = std::from_chars(value, end, rank);
  if (parsed.ec != std::errc{} || parsed.ptr != end || rank < 0) {
    return InvalidArgument("%s=%s is not a rank; a whole number from 0", name, value);
  }
  return rank;
}

}  // namespace

absl::StatusOr<std::optional<Rank>> WantedRank(std::optional<Rank> flag,
                                               const Environment& environment) {
  std::optional<Rank> wanted = flag;
  std::string source = flag.has_value() ? absl::StrFormat("--rank %d", *flag) : "";
  for (const char* name : kRankVariables) {
    const char* value = environment(name);
    if (value == nullptr) {
      continue;
    }
    ASSIGN_OR_RETURN(const Rank rank, ParseRank(name, value));
    if (wanted.has_value() && *wanted != rank) {
      return InvalidArgument("%s but %s=%d; unset the one that is wrong", source, name, rank);
    }
    wanted = rank;
    source = absl::StrFormat("%s=%d", name, rank);
  }
  return wanted;
}

}  // namespace ranklab::cli
