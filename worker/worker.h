// A worker's work on an assignment: reads the lab, opens the network, trains, reports.
#pragma once

#include "worker/dataset_cache.h"
#include "worker/member.h"
#include "worker/training_run.h"

namespace ranklab::worker {

class Worker final : public MemberWork {
 public:
  void Run(Member& member, GenerationInbox& inbox) override;

 private:
  DatasetCache datasets_;  // repeats and cells of a lab mostly share their data
};

}  // namespace ranklab::worker
