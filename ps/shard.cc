#include "ps/shard.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "compute/operations.h"
#include "core/check.h"
#include "core/status.h"

namespace ranklab::ps {
namespace {

absl::Status CheckOptions(const ShardOptions& options, const compute::TensorView& parameters) {
  if (options.worker_count < 1 || options.bound.steps < 0 || options.block_elements < 1) {
    return InvalidArgument("a shard for %d workers, a staleness of %d steps, blocks of %d elements",
                           options.worker_count, options.bound.steps, options.block_elements);
  }
  if (options.first_answered < 0 || options.first_answered >= options.worker_count) {
    return InvalidArgument("worker %d is to be answered first, of %d", options.first_answered,
                           options.worker_count);
  }
  if (options.backup_workers < 0 || options.backup_workers >= options.worker_count ||
      (options.backup_workers > 0 &&
       (options.bound.steps != 0 || options.order != Order::kArrival))) {
    return InvalidArgument("%d backup workers of %d; they need staleness 0 and order arrival",
                           options.backup_workers, options.worker_count);
  }
  if (options.range.begin < 0 || options.range.end < options.range.begin) {
    return InvalidArgument("a shard of the elements %s", NameOf(options.range));
  }
  if (parameters.dtype != compute::DType::kFloat32 || parameters.device == nullptr ||
      parameters.element_count() != options.range.size()) {
    return InvalidArgument("a shard of %d elements wants as many float32 of a device, not %d",
                           options.range.size(), parameters.element_count());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Shard>> Shard::Make(EventLoop& loop, const ShardOptions& options,
                                                   const OptimizerFactory& make_optimizer,
                                                   const compute::TensorView& parameters) {
  RETURN_IF_ERROR(CheckOptions(options, parameters));
  std::unique_ptr<Shard> shard(new Shard(loop, options, parameters));
  RETURN_IF_ERROR(shard->Prepare(make_optimizer));
  return shard;
}

Shard::Shard(EventLoop& loop, const ShardOptions& options, const compute::TensorView& parameters)
    : options_(options),
      parameters_(parameters),
      gate_(options.worker_count, options.bound),
      round_(options.worker_count, options.order, options.backup_workers),
      turns_(static_cast<std::size_t>(options.worker_count)),
      standby_(options.standby),
      queue_(loop) {
  counters_.late_steps.resize(turns_.size());
}

absl::Status Shard::Prepare(const OptimizerFactory& make_optimizer) {
  const std::int64_t elements = options_.range.size();
  const std::int64_t blocks = (elements + options_.block_elements - 1) / options_.block_elements;
  for (std::int64_t block = 0; block < blocks; ++block) {
    ASSIGN_OR_RETURN(std::unique_ptr<compute::Optimizer> optimizer, make_optimizer());
    optimizers_.push_back(std::move(optimizer));
  }
  if (standby_) {
    ASSIGN_OR_RETURN(staged_, GradientBuffer());
    return absl::OkStatus();
  }
  for (Turn& turn : turns_) {
    ASSIGN_OR_RETURN(turn.gradients, GradientBuffer());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<compute::Buffer>> Shard::GradientBuffer() {
  return parameters_.device->Allocate(
      options_.range.size() * compute::SizeOf(compute::DType::kFloat32),
      compute::MemoryKind::kGradients);
}

KeyRange Shard::BlockAt(std::int64_t block) const {
  const std::int64_t begin = block * options_.block_elements;
  return {begin, std::min(begin + options_.block_elements, options_.range.size())};
}

compute::TensorView Shard::GradientsOf(Rank worker, KeyRange block) {
  compute::Buffer& buffer = worker == kStaged ? *staged_ : *TurnOf(worker).gradients;
  return compute::ViewOf(buffer, compute::DType::kFloat32, {block.size(), 1, 1, 1}, block.begin);
}

absl::Status Shard::CheckWorker(Rank worker) const {
  RETURN_IF_ERROR(broken_);
  if (standby_) {
    return FailedPrecondition("elements %s are another server's; here is their replica",
                              NameOf(options_.range));
  }
  if (worker < 0 || worker >= options_.worker_count) {
    return InvalidArgument("worker %d of %d", worker, options_.worker_count);
  }
  return absl::OkStatus();
}

// May the worker push to `step`, or end it?
absl::Status Shard::CheckTurn(Rank worker, Step step) const {
  RETURN_IF_ERROR(CheckWorker(worker));
  const Step ended = turns_[static_cast<std::size_t>(worker)].ended;
  if (step < 1 || step > ended + 1) {
    return InvalidArgument("step %d of worker %d, which has ended step %d", step, worker, ended);
  }
  if (step <= ended) {
    return AlreadyExists("worker %d has ended step %d", worker, step);
  }
  if (!gate_.live(worker)) {
    return FailedPrecondition("worker %d has left or was removed", worker);
  }
  if (gate_.clock(worker) < ended) {
    return FailedPrecondition("step %d of worker %d before its step %d is applied; pull first",
                              step, worker, ended);
  }
  return absl::OkStatus();
}

absl::Status Shard::Push(Rank worker, Step step, KeyRange part,
                         const compute::TensorView& gradients) {
  if (!options_.range.Contains(part)) {
    return InvalidArgument("elements %s are not all in %s", NameOf(part), NameOf(options_.range));
  }
  if (gradients.dtype != options_.wire || gradients.element_count() != part.size() ||
      (gradients.data == nullptr && !part.empty())) {
    return InvalidArgument("%d bytes of gradients for %s, %d elements of %d bytes",
                           gradients.byte_count(), NameOf(part), part.size(),
                           SizeOf(options_.wire));
  }
  RETURN_IF_ERROR(CheckTurn(worker, step));
  if (part.empty()) {
    return absl::OkStatus();
  }
  Turn& turn = TurnOf(worker);
  switch (turn.parts.Find(part)) {
    case Coverage::Found::kAll:
      return AlreadyExists("elements %s of step %d of worker %d were counted", NameOf(part), step,
                           worker);
    case Coverage::Found::kSome:
      return InvalidArgument("some of elements %s of step %d of worker %d were counted",
                             NameOf(part), step, worker);
    case Coverage::Found::kNone:
      break;
  }
  turn.parts.Add(part);
  compute::TensorView place = GradientsOf(worker, PlaceOf(part));
  if (place.data == gradients.data) {
    return absl::OkStatus();  // they have landed there
  }
  place.device = gradients.device;  // memory that the CPU addresses
  return Convert(gradients, place);
}

std::byte* Shard::LandingFor(Rank worker, Step step, KeyRange part) {
  if (options_.wire != compute::DType::kFloat32 || !options_.range.Contains(part) ||
      !CheckTurn(worker, step).ok()) {
    return nullptr;
  }
  Turn& turn = TurnOf(worker);
  if (turn.parts.Find(part) != Coverage::Found::kNone ||
      turn.landings.Find(part) != Coverage::Found::kNone) {
    return nullptr;
  }
  turn.landings.Add(part);
  return GradientsOf(worker, PlaceOf(part)).data;
}

absl::Status Shard::FinishStep(Rank worker, Step step, const StepEnd& end) {
  // As a float32, because its inverse becomes one.
  const auto weight = static_cast<float>(end.weight);
  if (!(end.weight == 0.0 || (std::isnormal(weight) && weight > 0.0F))) {
    return InvalidArgument("a weight of %g in step %d of worker %d", end.weight, step, worker);
  }
  if (absl::Status turn = CheckTurn(worker, step); !turn.ok()) {
    NoteIfLate(worker, step);
    return turn;
  }
  Turn& turn = TurnOf(worker);
  if (turn.parts.Find(options_.range) != Coverage::Found::kAll) {
    return FailedPrecondition("parts of step %d of worker %d are missing", step, worker);
  }
  turn.parts.Clear();
  turn.landings.Clear();
  turn.ended = turn.counted = step;
  if (synchronous()) {
    round_.End(worker, end);
    AdvanceRound();
  } else {
    Update(worker, {.step = step, .end = end, .finished = {worker}});
  }
  return absl::OkStatus();
}

absl::Status Shard::CheckPull(Rank worker, Step step, KeyRange part) const {
  RETURN_IF_ERROR(CheckWorker(worker));
  if (!options_.range.Contains(part)) {
    return InvalidArgument("elements %s are not all in %s", NameOf(part), NameOf(options_.range));
  }
  const Step ended = turns_[static_cast<std::size_t>(worker)].ended;
  if (step < 1 || step > ended + 2) {
    return InvalidArgument("a pull for step %d of worker %d, which has ended step %d", step, worker,
                           ended);
  }
  if (gate_.removed(worker)) {
    return Aborted("worker %d was removed", worker);
  }
  return absl::OkStatus();
}

void Shard::Pull(Rank worker, Step step, KeyRange part, PulledFn pulled) {
  if (absl::Status wrong = CheckPull(worker, step, part); !wrong.ok()) {
    pulled(std::move(wrong));
    return;
  }
  ParkedPull pull{worker, step, part, queue_.jobs_queued(), std::move(pulled)};
  if (Ready(pull)) {
    Answer(std::move(pull));
  } else {
    ++counters_.parked_pulls;
    parked_.push_back(std::move(pull));
  }
}

bool Shard::Ready(const ParkedPull& pull) const {
  return !queue_.mid_job() && queue_.jobs_done() >= pull.jobs_before &&
         gate_.MayPull(pull.worker, pull.step);
}

void Shard::Answer(ParkedPull pull) {
  const KeyRange place = PlaceOf(pull.part);
  pull.pulled(PullReply{.parameters = compute::Slice(parameters_, place.begin, place.end),
                        .clock = gate_.slowest_step(),
                        .version = version_,
                        .skipped = TurnOf(pull.worker).skipped});
}

void Shard::AnswerReadyPulls() {
  const auto waiting = std::stable_partition(
      parked_.begin(), parked_.end(), [this](const ParkedPull& pull) { return Ready(pull); });
  // Taken out first: a reader may push and pull in its callback.
  std::vector<ParkedPull> ready(std::make_move_iterator(parked_.begin()),
                                std::make_move_iterator(waiting));
  parked_.erase(parked_.begin(), waiting);
  const auto turn = [this](const ParkedPull& pull) {
    const Rank behind = pull.worker - options_.first_answered;
    return behind < 0 ? behind + options_.worker_count : behind;
  };
  std::stable_sort(ready.begin(), ready.end(),
                   [&](const ParkedPull& a, const ParkedPull& b) { return turn(a) < turn(b); });
  for (ParkedPull& pull : ready) {
    Answer(std::move(pull));
  }
}

absl::Status Shard::Leave(Rank worker) {
  RETURN_IF_ERROR(CheckWorker(worker));
  if (gate_.removed(worker)) {
    return FailedPrecondition("worker %d was removed", worker);
  }
  if (!gate_.live(worker)) {
    return AlreadyExists("worker %d has left", worker);
  }
  if (!TurnOf(worker).parts.empty()) {
    return FailedPrecondition("worker %d leaves in the middle of step %d", worker,
                              TurnOf(worker).ended + 1);
  }
  gate_.Leave(worker);
  StopWaitingFor(worker);
  return absl::OkStatus();
}

void Shard::StopWaitingFor(Rank worker) {
  round_.Remove(worker);
  if (synchronous()) {
    AdvanceRound();
  }
  AnswerReadyPulls();
}

void Shard::Remove(Rank worker) {
  RANKLAB_CHECK(worker >= 0 && worker < options_.worker_count, "worker %d of %d", worker,
                options_.worker_count);
  if (gate_.removed(worker)) {
    return;
  }
  gate_.Remove(worker);
  TurnOf(worker).parts.Clear();
  const auto theirs =
      std::stable_partition(parked_.begin(), parked_.end(),
                            [worker](const ParkedPull& pull) { return pull.worker != worker; });
  std::vector<ParkedPull> dropped(std::make_move_iterator(theirs),
                                  std::make_move_iterator(parked_.end()));
  parked_.erase(theirs, parked_.end());
  for (ParkedPull& pull : dropped) {
    pull.pulled(Aborted("worker %d was removed", worker));
  }
  StopWaitingFor(worker);
}

ShardCounters Shard::counters() const {
  ShardCounters counters = counters_;
  counters.busy = queue_.busy();
  return counters;
}

}  // namespace ranklab::ps
