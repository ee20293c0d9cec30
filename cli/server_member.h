// A parameter server's work on an assignment: its range of the model behind the tensor wire, until
// every worker holds the final parameters.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>

#include "ps/server.h"
#include "worker/assignment.h"
#include "worker/member.h"

namespace ranklab::cli {

class ServerMember final : public worker::MemberWork {
 public:
  void Run(worker::Member& member, worker::GenerationInbox& inbox) override;

  // What it holds now, for Describe; from any thread.
  struct Holding {
    ps::KeyRange range;
    std::int64_t version = 0;
    std::vector<Step> clocks;  // [worker]
    Bytes bytes_pushed = 0;
    Bytes bytes_pulled = 0;
  };
  Holding holding() const;

 private:
  class Serving;

  mutable absl::Mutex mutex_;
  Serving* serving_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace ranklab::cli
