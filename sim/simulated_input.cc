#include "sim/simulated_input.h"

#include <utility>

#include "core/check.h"

namespace ranklab::sim {

SimulatedInput::SimulatedInput(EventLoop& loop, int depth) : loop_(loop), depth_(depth) {
  RANKLAB_CHECK(depth >= 1, "an input queue of %d batches", depth);
  Gather();
}

void SimulatedInput::Gather() {
  loop_.RunAt(loop_.Now() + extra_, [this] { Gathered(); });
}

void SimulatedInput::Gathered() {
  if (ready_ < depth_) {
    Put();
  } else {
    holds_one_ = true;
  }
}

void SimulatedInput::Put() {
  holds_one_ = false;
  ++ready_;
  Gather();
  if (waiting_) {
    --ready_;
    Task taken = *std::exchange(waiting_, std::nullopt);
    taken();
  }
}

void SimulatedInput::Take(Task taken) {
  RANKLAB_CHECK(!waiting_, "a batch is waited for already");
  if (ready_ == 0) {
    waiting_ = std::move(taken);
    return;
  }
  --ready_;
  if (holds_one_) {
    Put();
  }
  taken();
}

}  // namespace ranklab::sim
