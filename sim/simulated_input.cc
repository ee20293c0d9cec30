#include "sim/simulated_input.h"

#include <utility>

#include "core/check.h"

namespace ranklab::sim {

SimulatedInput::SimulatedInput(EventLoop& loop, const InputOptions& options)
    : loop_(loop), options_(options) {
  RANKLAB_CHECK(options.depth >= 1 && options.loaders >= 1, "%d loaders, %d batches ahead",
                options.loaders, options.depth);
  for (int loader = 0; loader < options.loaders; ++loader) {
    Gather();
  }
}

void SimulatedInput::Gather() {
  loop_.RunAt(loop_.Now() + extra_, [this, step = ++begun_] { Gathered(step); });
}

void SimulatedInput::Gathered(Step step) {
  held_.insert(step);
  PutWhatFits();
  Serve();
}

// A loader whose batch has found room goes on to the next.
void SimulatedInput::PutWhatFits() {
  while (!held_.empty() && *held_.begin() <= taken_ + options_.depth) {
    ready_.insert(held_.extract(held_.begin()));
    Gather();
  }
}

void SimulatedInput::Serve() {
  if (!waiting_ || ready_.erase(taken_ + 1) == 0) {
    return;
  }
  ++taken_;
  PutWhatFits();
  Task taken = *std::exchange(waiting_, std::nullopt);
  taken();
}

void SimulatedInput::Take(Task taken) {
  RANKLAB_CHECK(!waiting_, "a batch is waited for already");
  waiting_ = std::move(taken);
  Serve();
}

}  // namespace ranklab::sim
