// All-reduce of each bucket: begun when its last gradient is ready, one bucket after the other, as
// on one communication stream, overlapped with the rest of the backward pass.
#include <deque>
#include <string>
#include <utility>

#include "collectives/communicator.h"
#include "core/check.h"
#include "core/status.h"
#include "worker/exchange.h"

namespace ranklab::worker {
namespace {

class CollectiveExchange final : public ExchangeMachine {
 public:
  CollectiveExchange(const ExchangeDeps& deps, const ExchangeOptions& options,
                     std::unique_ptr<collectives::Communicator> communicator, std::string algorithm)
      : deps_(deps),
        options_(options),
        communicator_(std::move(communicator)),
        name_("collective." + algorithm) {}

  std::string_view name() const override { return name_; }
  Outcome outcome() const override { return Outcome::kSummedGradients; }

  // The weight travels behind the last layer's gradients, so that its sum costs no message; but
  // where these are narrower than it, ahead of them in one of its own.
  void BeginStep(double weight) override { Tail()[0] = static_cast<float>(weight); }

  void Begin(Step step, const Bucket& bucket, DoneFn done) override {
    compute::TensorView buffer = bucket.sent;
    if (bucket.end == deps_.model.parameter_count()) {
      if (buffer.dtype == compute::DType::kFloat32) {
        buffer.shape[0] += kGradientTail;
      } else {
        SumWeight(step, buffer.data != nullptr);
      }
    }
    Enqueue({buffer, {.step = step, .bucket = bucket.index}, std::move(done)});
  }

  void EndStep(Step, bool overflow, DoneFn done) override {
    overflow_ = overflow;
    done(absl::OkStatus());
  }

  StepExchange Ended(Step) const override {
    return {.weight_sum = static_cast<double>(Tail()[0]), .overflow = overflow_};
  }

  bool Finished(Step step, Step steps) const override { return step >= steps; }
  void ServerLost(Rank, Rank) override {}  // there is none
  void Leave(DoneFn done) override { done(absl::OkStatus()); }
  void FetchFinal(DoneFn done) override { done(absl::OkStatus()); }

  // The collectives have deadlines of their own that name whom they wait for; this one is behind
  // them.
  Nanos PatienceWith(int buckets) const override {
    return options_.timeout * (1 + buckets) + std::chrono::seconds(10);
  }
  std::string WaitingFor() const override {
    return absl::StrFormat("the collectives of the step, %d of them", queue_.size());
  }

 private:
  struct Call {
    compute::TensorView buffer;
    collectives::CallTag tag;
    DoneFn done;
  };

  float* Tail() const {
    if (deps_.copies != nullptr) {
      return deps_.copies->tail();
    }
    return reinterpret_cast<float*>(deps_.model.gradients().data) + deps_.model.parameter_count();
  }

  // `real`: not only the size travels. Needs no `done`: a call that fails ends all behind it.
  void SumWeight(Step step, bool real) {
    Enqueue({{.data = real ? reinterpret_cast<std::byte*>(Tail()) : nullptr,
              .dtype = compute::DType::kFloat32,
              .shape = {kGradientTail, 1, 1, 1}},
             {.step = step},
             [](const absl::Status&) {}});
  }

  void Enqueue(Call call) {
    queue_.push_back(std::move(call));
    if (queue_.size() == 1) {
      RunNext();
    }
  }

  void RunNext() {
    const Call& call = queue_.front();
    communicator_->AllReduce(call.buffer, compute::ReduceOp::kSum, call.tag,
                             [this](absl::Status status) {
                               DoneFn done = std::move(queue_.front().done);
                               queue_.pop_front();
                               if (!queue_.empty()) {
                                 RunNext();
                               }
                               done(std::move(status));
                             });
  }

  const ExchangeDeps deps_;
  const ExchangeOptions options_;
  std::unique_ptr<collectives::Communicator> communicator_;
  const std::string name_;
  bool overflow_ = false;
  std::deque<Call> queue_;  // the front one runs
};

}  // namespace

absl::StatusOr<std::unique_ptr<ExchangeMachine>> MakeCollectiveExchange(
    const ExchangeDeps& deps, const ExchangeOptions& options) {
  const auto& spec = std::get<experiment::CollectiveSpec>(options.spec.kind);
  collectives::ProcessGroup world{
      .id = 0, .members = {}, .my_rank = options.rank, .generation = options.generation};
  for (Rank rank = 0; rank < options.workers; ++rank) {
    world.members.push_back(rank);
  }
  const std::string algorithm(spec.resolved());
  ASSIGN_OR_RETURN(
      auto communicator,
      collectives::Communicator::Make({deps.loop, deps.messenger, deps.reducer, deps.trace}, world,
                                      {.algorithm = algorithm, .timeout = options.timeout}));
  return std::make_unique<CollectiveExchange>(deps, options, std::move(communicator), algorithm);
}

}  // namespace ranklab::worker
