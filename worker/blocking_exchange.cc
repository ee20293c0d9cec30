#include "worker/blocking_exchange.h"

#include <string>
#include <utility>
#include <vector>

#include "core/status.h"
#include "core/status_latch.h"
#include "worker/loop_work.h"

namespace ranklab::worker {
namespace {

class BlockingExchange final : public GradientExchange {
 public:
  BlockingExchange(EventLoop& loop, bool overlap, std::unique_ptr<ExchangeMachine> machine,
                   WireGradients wire)
      : loop_(loop), overlap_(overlap), machine_(std::move(machine)), wire_(std::move(wire)) {}

  ~BlockingExchange() override { work_.Drain(); }

  std::string_view name() const override { return machine_->name(); }
  Outcome outcome() const override { return machine_->outcome(); }

  void BeginStep(Step, double weight) override {
    begun_.clear();
    Run([weight](ExchangeMachine& machine, DoneFn done) {
      machine.BeginStep(weight);
      done(absl::OkStatus());
    });
  }

  // What rounding makes of gradients that a server applies is put back among them: an overflow
  // shows there.
  void Begin(Step step, Bucket& bucket) override {
    begun_.push_back(&bucket);
    rounding_.Update(wire_.Round(bucket));
    if (outcome() == Outcome::kUpdatedParameters) {
      rounding_.Update(wire_.Widen(bucket));
    }
    if (overlap_) {
      Post(step, bucket);
    }
  }

  absl::StatusOr<StepExchange> FinishStep(Step step, bool overflow) override {
    const Nanos begins = loop_.Now();
    for (const Bucket* bucket : begun_) {
      if (!overlap_) {
        Post(step, *bucket);
      }
    }
    Run([step, overflow](ExchangeMachine& machine, DoneFn done) {
      machine.EndStep(step, overflow, std::move(done));
    });
    RETURN_IF_ERROR(Wait());
    StepExchange exchanged = machine_->Ended(step);
    exchanged.exposed = loop_.Now() - begins;
    if (outcome() == Outcome::kSummedGradients) {
      for (const Bucket* bucket : begun_) {
        rounding_.Update(wire_.Widen(*bucket));
      }
    }
    RETURN_IF_ERROR(std::exchange(rounding_, absl::OkStatus()));
    return exchanged;
  }

  bool Finished(Step step, Step steps) const override { return machine_->Finished(step, steps); }

  absl::Status Leave() override {
    Run([](ExchangeMachine& machine, DoneFn done) { machine.Leave(std::move(done)); });
    return Wait();
  }

  absl::Status FetchFinal() override {
    Run([](ExchangeMachine& machine, DoneFn done) { machine.FetchFinal(std::move(done)); });
    return Wait();
  }

 private:
  template <typename Call>
  void Run(Call call) {
    work_.Begin();
    loop_.Post([this, call = std::move(call)]() mutable {
      call(*machine_, [this](const absl::Status& status) { work_.End(status); });
    });
  }

  void Post(Step step, const Bucket& bucket) {
    Run([step, &bucket](ExchangeMachine& machine, DoneFn done) {
      machine.Begin(step, bucket, std::move(done));
    });
  }

  // Between waits nothing is open, so the machine may be read here.
  absl::Status Wait() {
    const Nanos patience = machine_->PatienceWith(static_cast<int>(begun_.size()));
    if (work_.Wait(patience)) {
      return work_.TakeStatus();
    }
    // Ask the loop whom for; the transport is then aborted by the run, which ends what is open.
    StatusLatch asked;
    loop_.Post([&] {
      asked.Set(DeadlineExceeded("waited %.1f s for %s",
                                 static_cast<double>(patience.count()) * 1e-9,
                                 machine_->WaitingFor()));
    });
    return asked.Wait(std::chrono::seconds(5), "the loop");
  }

  EventLoop& loop_;
  const bool overlap_;
  std::unique_ptr<ExchangeMachine> machine_;  // on the loop; between waits on either thread
  const WireGradients wire_;
  absl::Status rounding_;
  std::vector<const Bucket*> begun_;  // in this step; without overlap, posted in FinishStep
  LoopWork work_;
};

}  // namespace

std::unique_ptr<GradientExchange> MakeBlocking(EventLoop& loop, bool overlap,
                                               std::unique_ptr<ExchangeMachine> machine,
                                               WireGradients wire) {
  return std::make_unique<BlockingExchange>(loop, overlap, std::move(machine), std::move(wire));
}

}  // namespace ranklab::worker
