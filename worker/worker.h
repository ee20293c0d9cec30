// A worker's work on an assignment: reads the lab, opens the network, trains, reports.
#pragma once

#include <map>
#include <string>

#include <absl/status/statusor.h>

#include "worker/dataset.h"
#include "worker/member.h"
#include "worker/training_run.h"

namespace ranklab::worker {

class Worker final : public MemberWork {
 public:
  void Run(Member& member, GenerationInbox& inbox) override;

 private:
  // Kept from run to run: repeats and cells of a lab mostly share their data.
  absl::StatusOr<const Dataset*> DataOf(const experiment::LabSpec& spec,
                                        const std::string& lab_file);

  std::map<std::string, Dataset> datasets_;  // by what they are made from
};

}  // namespace ranklab::worker
