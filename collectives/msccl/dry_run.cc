#include "collectives/msccl/dry_run.h"

#include <deque>
#include <map>
#include <string>
#include <utility>

#include "core/status.h"

namespace ranklab::collectives {
namespace {

// Runs the program as MSCCL would, sends never waiting, and notes in which order its steps can run.
class DryRun {
 public:
  explicit DryRun(const MscclProgram& program) : program_(program) {
    for (const MscclGpu& gpu : program.gpus) {
      next_.emplace_back(gpu.threadblocks.size());
    }
  }

  absl::StatusOr<std::vector<MscclPlace>> Run() {
    bool goes_on = true;
    while (goes_on) {
      goes_on = false;
      for (Rank gpu = 0; gpu < static_cast<Rank>(program_.gpus.size()); ++gpu) {
        for (std::int32_t t = 0; t < static_cast<std::int32_t>(NextOf(gpu).size()); ++t) {
          ASSIGN_OR_RETURN(const bool moved, RunThreadblock(gpu, t));
          goes_on |= moved;
        }
      }
    }
    RETURN_IF_ERROR(CheckEnd());
    return std::move(order_);
  }

 private:
  std::vector<std::int32_t>& NextOf(Rank gpu) { return next_[static_cast<std::size_t>(gpu)]; }

  // As far as it gets; whether that is anywhere.
  absl::StatusOr<bool> RunThreadblock(Rank gpu, std::int32_t t) {
    const MscclThreadblock& threadblock = program_.ThreadblockAt({gpu, t});
    std::int32_t& next = NextOf(gpu)[static_cast<std::size_t>(t)];
    const std::int32_t begin = next;
    while (next < static_cast<std::int32_t>(threadblock.steps.size())) {
      const MscclPlace place{gpu, t, next};
      const MscclStep& step = threadblock.steps[static_cast<std::size_t>(next)];
      if (WaitsForStep(place) || WaitsForMessage(place)) {
        break;
      }
      if (Receives(step.type)) {
        RETURN_IF_ERROR(
            TakeMessage(place, under_way_[{threadblock.recv, gpu, threadblock.channel}]));
      }
      if (Sends(step.type)) {
        under_way_[{gpu, threadblock.send, threadblock.channel}].push_back(place);
      }
      order_.push_back(place);
      ++next;
    }
    return next > begin;
  }

  bool WaitsForStep(const MscclPlace& place) {
    const MscclStep& step = program_.StepAt(place);
    return step.after_threadblock >= 0 &&
           NextOf(place.gpu)[static_cast<std::size_t>(step.after_threadblock)] <= step.after_step;
  }

  bool WaitsForMessage(const MscclPlace& place) {
    const MscclThreadblock& threadblock = program_.ThreadblockAt(place);
    return Receives(program_.StepAt(place).type) &&
           under_way_[{threadblock.recv, place.gpu, threadblock.channel}].empty();
  }

  absl::Status TakeMessage(const MscclPlace& place, std::deque<MscclPlace>& messages) {
    const MscclPlace sender = messages.front();
    messages.pop_front();
    const std::int32_t sent = program_.StepAt(sender).count;
    const std::int32_t wanted = program_.StepAt(place).count;
    if (sent != wanted) {
      return WrongAt(place, absl::StrFormat("receives %d chunks, but %s sends %d", wanted,
                                            NameOf(sender), sent));
    }
    return absl::OkStatus();
  }

  absl::Status CheckEnd() {
    RETURN_IF_ERROR(ForEachStep(
        program_,
        [&](const MscclPlace& place, const MscclThreadblock& threadblock,
            const MscclStep& step) -> absl::Status {
          if (place.step < NextOf(place.gpu)[static_cast<std::size_t>(place.threadblock)]) {
            return absl::OkStatus();
          }
          if (WaitsForStep(place)) {
            return WrongAt(place, absl::StrFormat("waits for ever for threadblock %d, step %d",
                                                  step.after_threadblock, step.after_step));
          }
          return WrongAt(place,
                         absl::StrFormat("waits for ever for a message of gpu %d on channel %d",
                                         threadblock.recv, threadblock.channel));
        }));
    for (const auto& [connection, messages] : under_way_) {
      if (!messages.empty()) {
        return WrongAt(messages.front(), absl::StrFormat("gpu %d never receives what it sends",
                                                         std::get<1>(connection)));
      }
    }
    return absl::OkStatus();
  }

  const MscclProgram& program_;
  std::vector<std::vector<std::int32_t>> next_;  // by GPU and thread block: the step to run
  std::map<Connection, std::deque<MscclPlace>> under_way_;
  std::vector<MscclPlace> order_;
};

}  // namespace

absl::StatusOr<std::vector<MscclPlace>> OrderOfSteps(const MscclProgram& program) {
  return DryRun(program).Run();
}

}  // namespace ranklab::collectives
