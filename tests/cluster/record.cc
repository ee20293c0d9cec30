#include "tests/cluster/record.h"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <system_error>

#include <gtest/gtest.h>

#include "core/status.h"
#include "tests/cluster/program.h"

namespace ranklab::cluster_test {
namespace {

std::vector<std::string> SplitAtCommas(const std::string& line) {
  std::vector<std::string> words;
  std::istringstream stream(line);
  for (std::string word; std::getline(stream, word, ',');) {
    words.push_back(word);
  }
  if (line.ends_with(',')) {
    words.emplace_back();  // the last value is not known
  }
  return words;
}

std::vector<StepLine> ReadSteps(const std::string& path) {
  std::istringstream lines(ReadText(path));
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> columns = SplitAtCommas(line);
  std::vector<StepLine> steps;
  while (std::getline(lines, line)) {
    const std::vector<std::string> values = SplitAtCommas(line);
    EXPECT_EQ(values.size(), columns.size()) << path << ": " << line;
    StepLine& step = steps.emplace_back();
    for (std::size_t i = 0; i < std::min(values.size(), columns.size()); ++i) {
      step[columns[i]] = values[i];
    }
  }
  return steps;
}

std::vector<nlohmann::json> ReadInjections(const std::string& folder) {
  std::vector<nlohmann::json> injections;
  std::error_code none;
  for (const auto& cell : std::filesystem::directory_iterator(folder + "/cells", none)) {
    std::istringstream lines(ReadText(cell.path().string() + "/injections.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      nlohmann::json entry = nlohmann::json::parse(line, nullptr, false);
      EXPECT_FALSE(entry.is_discarded()) << line;
      injections.push_back(std::move(entry));
    }
  }
  return injections;
}

}  // namespace

std::vector<std::string> RecordsIn(const std::string& out) {
  std::vector<std::string> folders;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(out, none)) {
    folders.push_back(entry.path());
  }
  return folders;
}

std::vector<experiment::CellSummary> Record::Cells() const {
  std::vector<experiment::CellSummary> cells;
  std::copy_if(summary.cells.begin(), summary.cells.end(), std::back_inserter(cells),
               [](const experiment::CellSummary& cell) { return !cell.baseline; });
  return cells;
}

std::vector<StepLine> Record::StepsOf(int rank) const {
  std::vector<StepLine> lines;
  std::copy_if(steps.begin(), steps.end(), std::back_inserter(lines),
               [&](const StepLine& line) { return line.at("rank") == std::to_string(rank); });
  return lines;
}

Record ReadOneRecord(const std::string& out) {
  const std::vector<std::string> folders = RecordsIn(out);
  EXPECT_EQ(folders.size(), 1U) << "records below " << out;
  Record record;
  if (folders.empty()) {
    return record;
  }
  record.folder = folders.front();
  const auto summary = experiment::RunSummaryFromJson(ReadText(record.folder + "/summary.json"));
  EXPECT_TRUE(summary.ok()) << MessageOf(summary.status());
  if (summary.ok()) {
    record.summary = *summary;
  }
  record.steps = ReadSteps(record.folder + "/steps.csv");
  record.injections = ReadInjections(record.folder);
  return record;
}

}  // namespace ranklab::cluster_test
