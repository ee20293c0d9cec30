// The baseline: one worker, nothing to exchange.
#include <string>

#include "worker/exchange.h"

namespace ranklab::worker {
namespace {

// Live it has no use for the loop: a native baseline must not pay for one.
class NoExchange final : public GradientExchange {
 public:
  std::string_view name() const override { return "none"; }
  Outcome outcome() const override { return Outcome::kSummedGradients; }
  void BeginStep(Step, double weight) override { weight_ = weight; }
  void Begin(Step, Bucket&) override {}
  absl::StatusOr<StepExchange> FinishStep(Step, bool overflow) override {
    return StepExchange{.weight_sum = weight_, .overflow = overflow};
  }
  bool Finished(Step step, Step steps) const override { return step >= steps; }
  void ServerLost(Rank, Rank) override {}
  absl::Status Leave() override { return absl::OkStatus(); }
  absl::Status FetchFinal() override { return absl::OkStatus(); }

 private:
  double weight_ = 0;
};

class NoExchangeMachine final : public ExchangeMachine {
 public:
  std::string_view name() const override { return "none"; }
  Outcome outcome() const override { return Outcome::kSummedGradients; }
  void BeginStep(double weight) override { weight_ = weight; }
  void Begin(Step, const Bucket&, DoneFn done) override { done(absl::OkStatus()); }
  void EndStep(Step, bool overflow, DoneFn done) override {
    overflow_ = overflow;
    done(absl::OkStatus());
  }
  StepExchange Ended(Step) const override { return {.weight_sum = weight_, .overflow = overflow_}; }
  bool Finished(Step step, Step steps) const override { return step >= steps; }
  void ServerLost(Rank, Rank) override {}
  void Leave(DoneFn done) override { done(absl::OkStatus()); }
  void FetchFinal(DoneFn done) override { done(absl::OkStatus()); }
  Nanos PatienceWith(int) const override { return Nanos::max(); }
  std::string WaitingFor() const override { return "nobody"; }

 private:
  double weight_ = 0;
  bool overflow_ = false;
};

}  // namespace

std::unique_ptr<GradientExchange> MakeNoExchange() { return std::make_unique<NoExchange>(); }

std::unique_ptr<ExchangeMachine> MakeNoExchangeMachine() {
  return std::make_unique<NoExchangeMachine>();
}

}  // namespace ranklab::worker
