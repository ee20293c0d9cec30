// The record that a run left, as its readers see it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "experiment/run_record.h"

namespace ranklab::cluster_test {

// Records below the folder that --out named; none when it is not there.
std::vector<std::string> RecordsIn(const std::string& out);

// One line of steps.csv by its columns' names.
using StepLine = std::map<std::string, std::string>;

struct Record {
  std::string folder{};
  experiment::RunSummary summary{};
  std::vector<StepLine> steps{};
  std::vector<nlohmann::json> injections{};  // of all cells

  // Without the rows `none` that were added for the efficiency.
  std::vector<experiment::CellSummary> Cells() const;
  std::vector<StepLine> StepsOf(int rank) const;
};

// The one record below `out`. The test fails when there is none, or more, or it cannot be read.
Record ReadOneRecord(const std::string& out);

}  // namespace ranklab::cluster_test
