#include "cli/print_outcome.h"

#include <cstdio>

#include "report/summary_text.h"
#include "report/web/page.h"

namespace ranklab::cli {

void PrintOutcome(const experiment::RunSummary& summary, const std::string& folder, bool json) {
  if (json) {
    std::printf("%s\n", experiment::ToJson(summary).c_str());
    return;
  }
  std::printf("%s", report::PrintSummary(summary).c_str());
  std::printf("record: %s\nreport: %s/report.html%s\n", folder.c_str(), folder.c_str(),
              report::PageHasCharts() ? "" : " (no charts: built without npm)");
}

}  // namespace ranklab::cli
