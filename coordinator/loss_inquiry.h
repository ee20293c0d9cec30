// Who was lost? When a process dies, its peers see their connections break and give up, often
// before the coordinator sees the dead process's own session end; and a peer that gives up looks
// lost to its own neighbours. So reports are gathered for a moment, and the one whose own session
// ended or fell silent is named. This is the part for when nobody's has. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <absl/status/status.h>

#include "core/endpoint.h"
#include "core/units.h"

namespace ranklab::coordinator {

struct LossInquiryOptions {
  Nanos report_grace = std::chrono::milliseconds(300);  // from a report to a decision by it
  Nanos symptom_grace{};  // from a symptom to a decision by it: the suspicion time and a second
};

class LossInquiry {
 public:
  explicit LossInquiry(LossInquiryOptions options) : options_(options) {}

  // `reporter` saw `peer` go: "connection reset".
  void Report(Endpoint reporter, Endpoint peer, const std::string& what, Step step, Nanos now);

  // `member` could not go on, for a reason that a lost peer would explain.
  void Symptom(Endpoint member, const absl::Status& why, Nanos now);

  // `gone` was lost, and the others go on without it: what was said of it and by it is settled.
  void Settle(Endpoint gone);
  bool empty() const { return reports_.empty() && symptoms_.empty(); }

  struct Finding {
    Endpoint whom;  // the peer that most reports name; without reports, whose symptom is first
    bool reported = false;  // by a peer; otherwise `whom` itself gave up
    std::string evidence;   // "worker 1 reports: connection reset"
  };

  // A decision, once its time has come. `someone_is_silent`: a member of the generation has missed
  // heartbeats, so that suspicion will soon speak, or clear it: then reports wait as symptoms do.
  std::optional<Finding> Decide(bool someone_is_silent, Nanos now) const;

  // The latest step in which a peer saw `peer` go; 0: nobody did.
  Step LatestStep(Endpoint peer) const;

 private:
  struct ReportOf {
    Endpoint reporter;
    Endpoint peer;
    std::string what;
    Step step = 0;
    Nanos at{};
  };
  struct SymptomOf {
    Endpoint member;
    absl::Status why;
    Nanos at{};
  };

  Finding ByReport() const;

  LossInquiryOptions options_;
  std::vector<ReportOf> reports_;
  std::vector<SymptomOf> symptoms_;
};

}  // namespace ranklab::coordinator
