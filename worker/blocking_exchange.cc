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
                   TravellingGradients gradients)
      : loop_(loop),
        overlap_(overlap),
        machine_(std::move(machine)),
        wire_(std::move(gradients.wire)),
        copies_(std::move(gradients.copies)) {}

  ~BlockingExchange() override {
    downloads_.Drain();
    work_.Drain();
  }

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
    for (Bucket* bucket : begun_) {
      if (!overlap_) {
        Post(step, *bucket);
      }
    }
    RETURN_IF_ERROR(AwaitDownloads());
    Run([step, overflow](ExchangeMachine& machine, DoneFn done) {
      machine.EndStep(step, overflow, std::move(done));
    });
    RETURN_IF_ERROR(Wait());
    StepExchange exchanged = machine_->Ended(step);
    exchanged.exposed = loop_.Now() - begins;
    RETURN_IF_ERROR(TakeResult());
    RETURN_IF_ERROR(std::exchange(rounding_, absl::OkStatus()));
    return exchanged;
  }

  bool Finished(Step step, Step steps) const override { return machine_->Finished(step, steps); }

  void ServerLost(Rank lost, Rank heir) override {
    Run([lost, heir](ExchangeMachine& machine, DoneFn done) {
      machine.ServerLost(lost, heir);
      done(absl::OkStatus());
    });
  }

  absl::Status Leave() override {
    Run([](ExchangeMachine& machine, DoneFn done) { machine.Leave(std::move(done)); });
    return Wait();
  }

  absl::Status FetchFinal() override {
    Run([](ExchangeMachine& machine, DoneFn done) { machine.FetchFinal(std::move(done)); });
    RETURN_IF_ERROR(Wait());
    return outcome() == Outcome::kUpdatedParameters ? TakeResult() : absl::OkStatus();
  }

 private:
  template <typename Call>
  void Run(Call call) {
    work_.Begin();
    loop_.Post([this, call = std::move(call)]() mutable {
      call(*machine_, [this](const absl::Status& status) { work_.End(status); });
    });
  }

  void Post(Step step, Bucket& bucket) {
    auto begin = [this, step, &bucket] {
      Run([step, &bucket](ExchangeMachine& machine, DoneFn done) {
        machine.Begin(step, bucket, std::move(done));
      });
    };
    if (!copies_->needed()) {
      return begin();
    }
    downloads_.Begin();
    copies_->Download(wire_.PlaceOf(bucket), bucket,
                      [this, begin = std::move(begin)](const absl::Status& status) {
                        if (status.ok()) {
                          begin();
                        }
                        downloads_.End(status);
                      });
  }

  // Only then has every bucket been begun, and the step may end.
  absl::Status AwaitDownloads() {
    constexpr Nanos kPatience = std::chrono::seconds(60);
    if (!downloads_.Wait(kPatience)) {
      return DeadlineExceeded("waited 60 s for the device to copy gradients to the host");
    }
    return downloads_.TakeStatus();
  }

  // What the exchange has left in host memory becomes the model's.
  absl::Status TakeResult() {
    if (outcome() == Outcome::kUpdatedParameters) {
      return copies_->needed() ? copies_->UploadParameters() : absl::OkStatus();
    }
    for (const Bucket* bucket : begun_) {
      if (copies_->needed()) {
        RETURN_IF_ERROR(copies_->Upload(*bucket, wire_.PlaceOf(*bucket)));
      }
      RETURN_IF_ERROR(wire_.Widen(*bucket));
    }
    return absl::OkStatus();
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
  const std::unique_ptr<const HostCopies> copies_;
  absl::Status rounding_;
  std::vector<Bucket*> begun_;  // in this step; without overlap, posted in FinishStep
  LoopWork downloads_;
  LoopWork work_;
};

}  // namespace

std::unique_ptr<GradientExchange> MakeBlocking(EventLoop& loop, bool overlap,
                                               std::unique_ptr<ExchangeMachine> machine,
                                               TravellingGradients gradients) {
  return std::make_unique<BlockingExchange>(loop, overlap, std::move(machine),
                                            std::move(gradients));
}

}  // namespace ranklab::worker
