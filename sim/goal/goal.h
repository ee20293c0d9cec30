// GOAL: for each rank, sends, receives and computations, and what they wait for. The text format of
// LogGOPSim; source: spcl/LogGOPSim 76451de, Hoefler, Schneider and Lumsdaine, "LogGOPSim",
// HPDC 2010.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/statusor.h>

#include "core/units.h"

namespace ranklab::sim {

inline constexpr std::size_t kGoalTextLimit = std::size_t{1} << 28;  // bytes
inline constexpr int kGoalRankLimit = 1 << 20;
inline constexpr int kGoalUnitLimit = 64;  // CPUs, and NICs, of a rank

struct GoalOp {
  enum class Kind : std::uint8_t { kSend, kRecv, kCalc };

  Kind kind = Kind::kCalc;
  std::int64_t size = 0;  // bytes; kCalc: nanoseconds
  Rank peer = -1;         // kRecv: -1 takes a message from anybody
  std::int32_t tag = 0;   // kRecv: -1 takes any
  std::int32_t cpu = 0;
  std::int32_t nic = 0;
  std::vector<std::int32_t> after{};        // requires: starts once these have ended
  std::vector<std::int32_t> after_start{};  // irequires: starts once these have started
};

struct GoalProgram {
  std::vector<std::vector<GoalOp>> ranks;
};

// `num_ranks N`, then `rank r { ... }` for r = 0 to N-1. A statement a line, an optional label in
// front: `send 8b to 1 tag 0 cpu 0 nic 0`, `recv 8b from 0 ...`, `calc 100 cpu 0`, `a requires b`,
// `a irequires b`; // and /* */ are comments. Errors: InvalidArgument, "line 7: ..." and what would
// be right; a text, a number of ranks or units above the limits.
absl::StatusOr<GoalProgram> ReadGoal(std::string_view text);

// Read back it is the same program.
std::string WriteGoal(const GoalProgram& program);

}  // namespace ranklab::sim
