// What `ranklab collective` prints: nccl-tests' table, or its JSON.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "cli/collective/contestant.h"
#include "cli/collective/sweep.h"
#include "cli/collective/trial.h"

namespace ranklab::cli {

// Of one contestant: out of place, in place. None: it does not run this.
using Placements = std::array<std::optional<Measurement>, 2>;

struct RivalResult {
  std::string name;
  std::string why_not;  // empty: it took part
  Placements measured{};
};

struct Row {
  Trial trial;
  Placements measured{};
  std::vector<RivalResult> rivals{};
};

// Lines that begin with '#', and rows of nccl-tests' widths; so its readers take them. A rival is a
// line below its row, with the rival's time over ranklab's for both placements.
std::string PrintHead(const SweepOptions& options, Way way, bool checksums);
std::string PrintAlgorithm(const Trial& trial);  // before its first row
std::string PrintRow(const Row& row, int ranks);
std::string PrintTail(const std::vector<Row>& rows, const SweepOptions& options);

// The names of nccl-tests' -J, with the algorithm and the rivals of each result.
std::string PrintJson(const std::vector<Row>& rows, const SweepOptions& options, Way way,
                      bool checksums);

// Elements, of ranklab and its rivals.
std::int64_t WrongIn(const std::vector<Row>& rows);

}  // namespace ranklab::cli
