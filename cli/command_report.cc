#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "core/status.h"
#include "experiment/run_record.h"
#include "experiment/utilization.h"
#include "report/summary_text.h"
#include "report/web/page.h"
#include "report/web/render_record.h"

namespace ranklab::cli {
namespace {

// A utilization above 100 % was refused when the run was summed up: no report is complete without
// saying so.
absl::Status CheckUtilization(const experiment::RunSummary& summary) {
  for (const experiment::CellSummary& cell : summary.cells) {
    for (const experiment::Finding& finding : cell.findings) {
      if (finding.code == experiment::kImpossibleUtilization) {
        return InvalidArgument("%s cell %d: %s; %s", cell.part, cell.cell, finding.text,
                               finding.remedy);
      }
    }
  }
  return absl::OkStatus();
}

int Report(const std::vector<std::string>& folders, bool json) {
  absl::Status utilization;
  for (const std::string& folder : folders) {
    const absl::StatusOr<experiment::RunSummary> summary = report::RenderRecord(folder);
    if (!summary.ok()) {
      return Fail(summary.status());
    }
    utilization.Update(CheckUtilization(*summary));
    if (json) {
      std::printf("%s\n", experiment::ToJson(*summary).c_str());
      continue;
    }
    std::printf("%s: %s\n%s\n%sreport: %s/report.html%s\n", summary->lab.c_str(),
                summary->verdict.c_str(), report::PrintRanks(*summary).c_str(),
                report::PrintSummary(*summary).c_str(), folder.c_str(),
                report::PageHasCharts() ? "" : " (no charts: built without npm)");
  }
  return utilization.ok() ? kSuccess : Fail(utilization);
}

}  // namespace

void AddReportCommand(CLI::App& app, int& exit_code) {
  struct Flags {
    std::vector<std::string> folders;
    bool json = false;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app.add_subcommand("report", "the report of a finished run, made again from its record");
  command->footer("Example:\n  ranklab report runs/compare-20260101-120000");
  command
      ->add_option("runs", flags->folders,
                   "folders that `ranklab run` left; table.md and report.html are written anew")
      ->required();
  command->add_flag("--json", flags->json, "the summary as JSON");
  command->callback([flags, &exit_code] { exit_code = Report(flags->folders, flags->json); });
}

}  // namespace ranklab::cli
