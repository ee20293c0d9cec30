#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/read_record.h"
#include "core/status.h"
#include "experiment/quantity.h"
#include "report/record_comparison.h"

namespace ranklab::cli {
namespace {

struct CompareFlags {
  std::string a;
  std::string b;
  std::string part;    // empty: all
  std::string within;  // "10%"; empty: no verdict
  bool json = false;
};

// "10%" or "0.1" as 0.1; nothing for anything else.
std::optional<double> ParseShare(std::string text) {
  const bool percent = !text.empty() && text.back() == '%';
  if (percent) {
    text.pop_back();
  }
  const std::optional<double> number = experiment::ParseNumber(text);
  if (!number || !(*number >= 0) || !std::isfinite(*number)) {
    return std::nullopt;
  }
  return percent ? *number / 100 : *number;
}

absl::StatusOr<experiment::RunSummary> ReadPart(const std::string& folder,
                                                const std::string& part) {
  ASSIGN_OR_RETURN(experiment::RunSummary summary, ReadRecord(folder));
  if (!part.empty()) {
    std::erase_if(summary.cells, [&](const auto& cell) { return cell.part != part; });
    if (summary.cells.empty()) {
      return InvalidArgument("%s has no part %s", folder, part);
    }
  }
  return summary;
}

void Print(const CompareFlags& flags, const report::RecordComparison& comparison) {
  std::printf("A: %s\nB: %s\n%s", flags.a.c_str(), flags.b.c_str(),
              report::PrintTable(report::BuildTable(comparison)).c_str());
  for (const std::string& cell : comparison.only_in_a) {
    std::printf("only A has figures of %s\n", cell.c_str());
  }
  for (const std::string& cell : comparison.only_in_b) {
    std::printf("only B has figures of %s\n", cell.c_str());
  }
  if (const report::CellDifference* worst = comparison.Worst()) {
    std::printf("worst difference of step time: %.1f %% (%s%s%s)\n",
                std::abs(worst->ratio() - 1) * 100, worst->part.c_str(),
                worst->part.empty() ? "" : ": ", worst->label.c_str());
  }
}

int Compare(const CompareFlags& flags) {
  const std::optional<double> within = ParseShare(flags.within);
  if (!flags.within.empty() && !within) {
    return Fail(InvalidArgument("--within is \"%s\"; a share such as 10%%", flags.within));
  }
  const auto a = ReadPart(flags.a, flags.part);
  if (!a.ok()) {
    return Fail(a.status());
  }
  const auto b = ReadPart(flags.b, flags.part);
  if (!b.ok()) {
    return Fail(b.status());
  }
  const report::RecordComparison comparison = report::CompareRecords(*a, *b);
  if (flags.json) {
    std::printf("%s\n", report::ToJson(comparison).c_str());
  } else {
    Print(flags, comparison);
  }
  std::fflush(stdout);
  const report::CellDifference* worst = comparison.Worst();
  if (worst == nullptr) {
    return Fail(InvalidArgument("%s and %s have no cell in common", flags.a, flags.b));
  }
  if (within && std::abs(worst->ratio() - 1) > *within) {
    std::fprintf(stderr, "ranklab: step times differ by more than %s\n", flags.within.c_str());
    return kFailedExpectation;
  }
  return kSuccess;
}

}  // namespace

void AddCompareCommand(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<CompareFlags>();
  CLI::App* command = app.add_subcommand("compare", "two records beside each other, cell by cell");
  command->footer(
      "Example:\n"
      "  ranklab compare runs/compare-20260101-120000 runs/compare-20260101-121500 --within 10%\n"
      "Exit code: 0 success, 1 step times differ by more than --within, 2 a mistake in the input.");
  command->add_option("A", flags->a, "a folder that `ranklab run` or `simulate` left")->required();
  command->add_option("B", flags->b, "another one")->required();
  command->add_option("--part", flags->part, "this part of the lab alone");
  command->add_option("--within", flags->within, "the difference that is still fine, such as 10%");
  command->add_flag("--json", flags->json, "the comparison as JSON");
  command->callback([flags, &exit_code] { exit_code = Compare(*flags); });
}

}  // namespace ranklab::cli
