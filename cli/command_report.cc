#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "core/status.h"
#include "experiment/run_record.h"
#include "report/table.h"

namespace ranklab::cli {
namespace {

absl::StatusOr<experiment::RunSummary> ReadSummary(const std::string& folder) {
  const std::string path = folder + "/summary.json";
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return NotFound("%s cannot be read; name a folder that `ranklab run` left", path);
  }
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  auto summary = experiment::RunSummaryFromJson(text);
  return summary.ok() ? std::move(summary) : Annotate(summary.status(), path);
}

int Report(const std::vector<std::string>& folders, bool json) {
  for (const std::string& folder : folders) {
    const absl::StatusOr<experiment::RunSummary> summary = ReadSummary(folder);
    if (!summary.ok()) {
      return Fail(summary.status());
    }
    if (json) {
      std::printf("%s\n", experiment::ToJson(*summary).c_str());
      continue;
    }
    std::printf("%s: %s\n%s", summary->lab.c_str(), summary->verdict.c_str(),
                report::PrintTable(report::BuildTable(summary->cells)).c_str());
    for (const std::string& sentence : summary->sentences) {
      std::printf("%s\n", sentence.c_str());
    }
  }
  return kSuccess;
}

}  // namespace

void AddReportCommand(CLI::App& app, int& exit_code) {
  struct Flags {
    std::vector<std::string> folders;
    bool json = false;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("report", "the table of a finished run, from its record");
  command->footer("Example:\n  ranklab report runs/compare-20260101-120000");
  command->add_option("runs", flags->folders, "folders that `ranklab run` left")->required();
  command->add_flag("--json", flags->json, "the summary as JSON");
  command->callback([flags, &exit_code] { exit_code = Report(flags->folders, flags->json); });
}

}  // namespace ranklab::cli
