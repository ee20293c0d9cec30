#include <cstdio>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <absl/strings/str_format.h>

#include "cli/exit_code.h"
#include "cli/model_commands.h"
#include "sim/validation/check.h"

namespace ranklab::cli {
namespace {

struct Flags {
  std::string only;
  bool brief = false;
};

void PrintText(const std::string& text) { std::fputs(text.c_str(), stdout); }

void PrintRows(const sim::Comparison& comparison) {
  PrintText(absl::StrFormat("  %-52s %12s %12s %8s  %s\n", "row, " + comparison.unit, "published",
                            "predicted", "error", "kind"));
  for (const sim::ComparedRow& row : comparison.rows) {
    PrintText(absl::StrFormat("  %-52s %12.4g %12.4g %+7.1f%%  %s\n", row.name, row.published,
                              row.predicted, 100 * row.error(),
                              row.fitted ? "fitted" : "predicted"));
  }
}

// One check; false if it has regressed.
absl::StatusOr<bool> RunCheck(const sim::ValidationCheck& check, const Flags& flags) {
  const absl::StatusOr<sim::Comparison> comparison = check.compare();
  if (!comparison.ok()) {
    return comparison.status();
  }
  if (!flags.brief) {
    PrintText(absl::StrFormat("%s: %s (%s); %s\n", check.name, check.source, check.kind,
                              comparison->note));
    PrintRows(*comparison);
  }
  const double mean = comparison->MeanError();
  const double worst = comparison->WorstError();
  const bool holds = mean <= check.mean_limit && worst <= check.worst_limit;
  PrintText(absl::StrFormat(
      "%s: %d rows, mean error %.2f %% (limit %.1f), of predictions %.2f %%, worst %.2f %% "
      "(limit %.1f): %s\n",
      check.name, comparison->rows.size(), 100 * mean, 100 * check.mean_limit,
      100 * comparison->MeanPredictedError(), 100 * worst, 100 * check.worst_limit,
      holds ? "holds" : "REGRESSED"));
  return holds;
}

int Validate(const Flags& flags) {
  int ran = 0;
  int regressed = 0;
  for (const sim::ValidationCheck& check : sim::ValidationChecks()) {
    if (!flags.only.empty() && flags.only != check.name) {
      continue;
    }
    const absl::StatusOr<bool> holds = RunCheck(check, flags);
    if (!holds.ok()) {
      return Fail(holds.status());
    }
    ++ran;
    regressed += *holds ? 0 : 1;
  }
  PrintText(absl::StrFormat("validate: %d checks, %d regressed\n", ran, regressed));
  return regressed == 0 ? kSuccess : kFailedExpectation;
}

}  // namespace

void AddValidateCommand(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app.add_subcommand("validate", "the simulator's predictions beside published measurements");
  std::vector<std::string> names;
  for (const sim::ValidationCheck& check : sim::ValidationChecks()) {
    names.emplace_back(check.name);
  }
  command->add_option("check", flags->only, "one of them; all by default")
      ->check(CLI::IsMember(names));
  command->add_flag("--brief", flags->brief, "a line a check");
  command->footer("Exit code 1: an error grew beyond its limit.");
  command->callback([flags, &exit_code] { exit_code = Validate(*flags); });
}

}  // namespace ranklab::cli
