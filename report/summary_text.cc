#include "report/summary_text.h"

#include <absl/strings/str_format.h>

#include "report/rank_table.h"
#include "report/table.h"

namespace ranklab::report {

std::string PrintSummary(const experiment::RunSummary& summary) {
  std::string text = PrintTable(BuildTable(summary.cells));
  for (const std::string& sentence : summary.sentences) {
    text += sentence + "\n";
  }
  for (const experiment::ExpectationOutcome& outcome : summary.expectations) {
    const char* verdict = !outcome.judged ? "-     " : outcome.held ? "held  " : "FAILED";
    text +=
        absl::StrFormat("%s  %s: %s (%s)\n", verdict, outcome.part, outcome.text, outcome.found);
  }
  return text;
}

std::string PrintRanks(const experiment::RunSummary& summary) {
  const Table table = BuildRankTable(summary.cells);
  return table.rows.empty() ? std::string() : PrintTable(table);
}

std::string PrintSummaryMarkdown(const experiment::RunSummary& summary) {
  std::string text = "# " + summary.lab + "\n\n";
  if (!summary.question.empty()) {
    text += summary.question + "\n\n";
  }
  for (const std::string& sentence : summary.sentences) {
    text += "- " + sentence + "\n";
  }
  if (!summary.sentences.empty()) {
    text += "\n";
  }
  text += PrintMarkdown(BuildTable(summary.cells));
  if (!summary.expectations.empty()) {
    text += "\n| part | expected | held | found |\n| :--- | :--- | :--- | :--- |\n";
    for (const experiment::ExpectationOutcome& outcome : summary.expectations) {
      const char* held = !outcome.judged ? "-" : outcome.held ? "yes" : "**no**";
      text += absl::StrFormat("| %s | %s | %s | %s |\n", outcome.part, outcome.text, held,
                              outcome.found);
    }
  }
  if (const Table ranks = BuildRankTable(summary.cells); !ranks.rows.empty()) {
    text += "\n" + PrintMarkdown(ranks);
  }
  if (!summary.verdict.empty()) {
    text += "\n" + summary.verdict + "\n";
  }
  return text;
}

}  // namespace ranklab::report
