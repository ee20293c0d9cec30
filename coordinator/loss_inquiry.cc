#include "coordinator/loss_inquiry.h"

#include <algorithm>
#include <map>

#include "core/status.h"

namespace ranklab::coordinator {

void LossInquiry::Report(Endpoint reporter, Endpoint peer, const std::string& what, Step step,
                         Nanos now) {
  for (const ReportOf& known : reports_) {
    if (known.reporter == reporter && known.peer == peer) {
      return;  // one voice each
    }
  }
  reports_.push_back({.reporter = reporter, .peer = peer, .what = what, .step = step, .at = now});
}

void LossInquiry::Symptom(Endpoint member, const absl::Status& why, Nanos now) {
  symptoms_.push_back({.member = member, .why = why, .at = now});
}

void LossInquiry::Settle(Endpoint gone) {
  std::erase_if(reports_, [gone](const ReportOf& report) {
    return report.peer == gone || report.reporter == gone;
  });
  std::erase_if(symptoms_, [gone](const SymptomOf& symptom) { return symptom.member == gone; });
}

std::optional<LossInquiry::Finding> LossInquiry::Decide(bool someone_is_silent, Nanos now) const {
  if (!reports_.empty()) {
    const Nanos grace = someone_is_silent ? options_.symptom_grace : options_.report_grace;
    return now >= reports_.front().at + grace ? std::optional(ByReport()) : std::nullopt;
  }
  if (!symptoms_.empty() && now >= symptoms_.front().at + options_.symptom_grace) {
    const SymptomOf& first = symptoms_.front();
    return Finding{.whom = first.member, .reported = false, .evidence = MessageOf(first.why)};
  }
  return std::nullopt;
}

LossInquiry::Finding LossInquiry::ByReport() const {
  std::map<Endpoint, int> votes;
  for (const ReportOf& report : reports_) {
    ++votes[report.peer];
  }
  // Among equals the first report: the chain of those who give up starts at the lost one.
  const auto chosen = std::max_element(reports_.begin(), reports_.end(),
                                       [&votes](const ReportOf& a, const ReportOf& b) {
                                         return votes.at(a.peer) < votes.at(b.peer);
                                       });
  return {.whom = chosen->peer,
          .reported = true,
          .evidence = absl::StrFormat("%s reports: %s", NameOf(chosen->reporter), chosen->what)};
}

Step LossInquiry::LatestStep(Endpoint peer) const {
  Step latest = 0;
  for (const ReportOf& report : reports_) {
    if (report.peer == peer) {
      latest = std::max(latest, report.step);
    }
  }
  return latest;
}

}  // namespace ranklab::coordinator
