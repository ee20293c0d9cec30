// The baseline: one worker, nothing to exchange.
#include "worker/exchange.h"

namespace ranklab::worker {
namespace {

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
  absl::Status Leave() override { return absl::OkStatus(); }
  absl::Status FetchFinal() override { return absl::OkStatus(); }

 private:
  double weight_ = 0;
};

}  // namespace

std::unique_ptr<GradientExchange> MakeNoExchange() { return std::make_unique<NoExchange>(); }

}  // namespace ranklab::worker
