// How a shard's steps become updates: sums, the optimizer, and the replica that has them too.
#include <cstring>
#include <utility>

#include "core/check.h"
#include "core/status.h"
#include "ps/shard.h"

namespace ranklab::ps {
namespace {

void AddInto(const compute::TensorView& target, const compute::TensorView& source) {
  auto* into = reinterpret_cast<float*>(target.data);
  const auto* from = reinterpret_cast<const float*>(source.data);
  const std::int64_t count = target.element_count();
  for (std::int64_t i = 0; i < count; ++i) {
    into[i] += from[i];
  }
}

}  // namespace

void Shard::AdvanceRound() {
  if (round_.closed()) {
    return;
  }
  while (const std::optional<Rank> worker = round_.NextToFold()) {
    if (sum_in_ < 0) {
      sum_in_ = *worker;  // the others are added to the first one's buffer
    } else {
      Fold(sum_in_, *worker);
    }
  }
  if (round_.complete()) {
    CloseRound();
  }
}

// A late step shows once, when it ends.
void Shard::NoteIfLate(Rank worker, Step step) {
  if (CheckWorker(worker).ok() && step > TurnOf(worker).counted && step <= TurnOf(worker).ended) {
    TurnOf(worker).counted = step;
    ++counters_.late_steps[static_cast<std::size_t>(worker)];
  }
}

// Who has not ended the step that closes has no part in it.
void Shard::CountOut(Step step) {
  for (Rank worker = 0; worker < options_.worker_count; ++worker) {
    Turn& turn = TurnOf(worker);
    if (turn.ended < step && gate_.live(worker)) {
      turn.parts.Clear();
      turn.landings.Clear();
      turn.ended = step;
    }
  }
}

void Shard::CloseRound() {
  round_.Close();
  if (options_.backup_workers > 0) {
    CountOut(TurnOf(sum_in_).ended);
  }
  std::vector<Rank> finished;
  for (Rank worker = 0; worker < options_.worker_count; ++worker) {
    if (TurnOf(worker).ended > gate_.clock(worker) && !gate_.removed(worker)) {
      finished.push_back(worker);
    }
  }
  Update(sum_in_, {.step = TurnOf(sum_in_).ended,
                   .end = {round_.weight(), round_.overflow()},
                   .finished = std::move(finished)});
}

void Shard::Fold(Rank target, Rank source) {
  queue_.Enqueue(
      block_count(),
      [this, target, source](std::int64_t block) {
        AddInto(GradientsOf(target, BlockAt(block)), GradientsOf(source, BlockAt(block)));
        return absl::OkStatus();
      },
      [this](const absl::Status&) { AnswerReadyPulls(); });  // those that came in mid-job
}

void Shard::Update(Rank source, ReplicatedUpdate update) {
  const double scale = update.skips() ? 0.0 : 1.0 / update.end.weight;
  update.sequence = ++updates_begun_;
  queue_.Enqueue(
      update.skips() ? 0 : block_count(),
      [this, source, scale](std::int64_t block) {
        const KeyRange place = BlockAt(block);
        return optimizers_[static_cast<std::size_t>(block)]->Apply(
            compute::Slice(parameters_, place.begin, place.end), GradientsOf(source, place), scale);
      },
      [this, source, update](const absl::Status& status) {
        if (status.ok()) {
          Applied(update, source);
        } else {
          Break(Annotate(status, absl::StrFormat("update of step %d", update.step)));
        }
      });
}

void Shard::Applied(ReplicatedUpdate update, Rank source) {
  if (replicate_ == nullptr) {
    return Updated(update);
  }
  const compute::TensorView gradients =
      GradientsOf(source, {0, update.skips() ? 0 : options_.range.size()});
  replicate_(update, gradients, [this, update](const absl::Status& status) {
    if (status.ok()) {
      Updated(update);
    } else {
      Break(Annotate(status, absl::StrFormat("replica of the update of step %d", update.step)));
    }
  });
}

void Shard::Updated(const ReplicatedUpdate& update) {
  const bool skip = update.skips();
  updates_done_ = update.sequence;
  (skip ? counters_.skipped : counters_.updates) += 1;
  version_ += skip ? 0 : 1;
  for (const Rank worker : update.finished) {
    TurnOf(worker).skipped = skip;
    if (!gate_.removed(worker)) {
      gate_.Finish(worker, update.step);
    }
  }
  if (round_.closed()) {
    round_.Open();
    sum_in_ = -1;
  }
  for (DoneFn& taken : std::exchange(taken_, {})) {
    taken(absl::OkStatus());
  }
  AnswerReadyPulls();
}

void Shard::Break(const absl::Status& why) {
  broken_ = why;
  for (ParkedPull& pull : std::exchange(parked_, {})) {
    pull.pulled(why);
  }
  for (DoneFn& taken : std::exchange(taken_, {})) {
    taken(why);
  }
}

absl::Status Shard::CheckReplica(std::int64_t sequence) const {
  RETURN_IF_ERROR(broken_);
  if (!standby_) {
    return Aborted("the replica of elements %s was promoted: it is the shard now",
                   NameOf(options_.range));
  }
  if (sequence < 1 || sequence > updates_begun_ + 1) {
    return InvalidArgument("update %d for a replica that has %d", sequence, updates_begun_);
  }
  if (sequence > updates_begun_ && updates_done_ < updates_begun_) {
    return FailedPrecondition("update %d while update %d is applied", sequence, updates_begun_);
  }
  return absl::OkStatus();
}

absl::Status Shard::TakePart(std::int64_t sequence, KeyRange part,
                             const compute::TensorView& gradients) {
  RETURN_IF_ERROR(CheckReplica(sequence));
  if (!options_.range.Contains(part) || part.empty() ||
      gradients.dtype != compute::DType::kFloat32 || gradients.element_count() != part.size()) {
    return InvalidArgument("%d bytes of an update's gradients for %s of %s", gradients.byte_count(),
                           NameOf(part), NameOf(options_.range));
  }
  if (sequence <= updates_begun_) {
    return absl::OkStatus();  // a repeat of what it has whole
  }
  switch (staged_parts_.Find(part)) {
    case Coverage::Found::kAll:
      return absl::OkStatus();
    case Coverage::Found::kSome:
      return InvalidArgument("some of elements %s of update %d are here", NameOf(part), sequence);
    case Coverage::Found::kNone:
      break;
  }
  staged_parts_.Add(part);
  std::memcpy(GradientsOf(kStaged, PlaceOf(part)).data, gradients.data,
              static_cast<std::size_t>(gradients.byte_count()));
  return absl::OkStatus();
}

void Shard::TakeUpdate(const ReplicatedUpdate& update, DoneFn applied) {
  absl::Status check = CheckReplica(update.sequence);
  if (check.ok() && update.sequence <= updates_begun_) {
    if (update.sequence <= updates_done_) {
      return applied(absl::OkStatus());
    }
    taken_.push_back(std::move(applied));
    return;
  }
  if (check.ok() && !update.skips() &&
      staged_parts_.Find(options_.range) != Coverage::Found::kAll) {
    check = FailedPrecondition("parts of update %d are missing", update.sequence);
  }
  for (const Rank worker : update.finished) {
    if (check.ok() && (worker < 0 || worker >= options_.worker_count ||
                       (!gate_.removed(worker) && gate_.clock(worker) != update.step - 1))) {
      check = InvalidArgument("update %d ends step %d of worker %d", update.sequence, update.step,
                              worker);
    }
  }
  if (!check.ok()) {
    return applied(std::move(check));
  }
  staged_parts_.Clear();
  for (const Rank worker : update.finished) {
    TurnOf(worker).ended = TurnOf(worker).counted = update.step;
  }
  taken_.push_back(std::move(applied));
  Update(kStaged, update);
}

absl::Status Shard::Promote() {
  if (!standby_) {
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(broken_);
  for (Turn& turn : turns_) {
    ASSIGN_OR_RETURN(turn.gradients, GradientBuffer());
  }
  staged_parts_.Clear();  // of an update that will not come whole
  standby_ = false;
  return absl::OkStatus();
}

}  // namespace ranklab::ps
