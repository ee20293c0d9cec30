#include "coordinator/clock_prober.h"

#include <algorithm>

namespace ranklab::coordinator {
namespace {

constexpr Nanos kAnswerWithin = std::chrono::seconds(1);
constexpr Nanos kQuickPause = std::chrono::milliseconds(5);
constexpr int kQuickQuestions = 8;

}  // namespace

void ClockProber::Begin() { Ask(); }

void ClockProber::Ask() {
  question_ = std::make_unique<Question>();
  question_->context.set_deadline(std::chrono::system_clock::now() + kAnswerWithin);
  {
    absl::MutexLock lock(&mutex_);
    ++under_way_;
  }
  question_->asked = loop_.Now();
  stub_.async()->ReadClock(&question_->context, &question_->request, &question_->reply,
                           [self = shared_from_this()](const grpc::Status& status) {
                             self->loop_.Post([self, status, answered = self->loop_.Now()] {
                               self->Answered(status, answered);
                             });
                             absl::MutexLock lock(&self->mutex_);
                             --self->under_way_;
                           });
}

void ClockProber::Answered(const grpc::Status& status, Nanos answered) {
  if (cancelled_) {
    return;
  }
  if (status.ok()) {
    Align(answered);
  }
  question_.reset();
  ++asked_;
  const Nanos pause = asked_ < kQuickQuestions ? kQuickPause : longest_pause_;
  timer_ = loop_.RunAt(loop_.Now() + pause, [self = shared_from_this()] { self->Ask(); });
  if (status.ok()) {
    answered_();  // last: it may end us
  }
}

void ClockProber::Align(Nanos answered) {
  const bool shared = !own_clock_.empty() && question_->reply.clock() == own_clock_;
  if (shared) {
    return;  // clock_ stays zero, and is exact
  }
  alignment_.Add(question_->asked, Nanos(question_->reply.now_ns()), answered);
  if (const auto best = alignment_.At(loop_.Now())) {
    absl::MutexLock lock(&mutex_);
    clock_ = *best;
  }
}

void ClockProber::Cancel() {
  cancelled_ = true;
  loop_.Cancel(timer_);
  if (question_ != nullptr) {
    question_->context.TryCancel();
  }
}

void ClockProber::Await() {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(
      +[](int* under_way) { return *under_way == 0; }, &under_way_));
}

ClockOffset ClockProber::clock() const {
  absl::MutexLock lock(&mutex_);
  return clock_;
}

}  // namespace ranklab::coordinator
