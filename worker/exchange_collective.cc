// All-reduce of each bucket: begun when its last gradient is ready, one bucket after the other, as
// on one communication stream, overlapped with the rest of the backward pass.
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "collectives/communicator.h"
#include "core/check.h"
#include "worker/exchange.h"
#include "worker/loop_work.h"

namespace ranklab::worker {
namespace {

class CollectiveExchange final : public GradientExchange {
 public:
  CollectiveExchange(const ExchangeDeps& deps, const ExchangeOptions& options,
                     std::unique_ptr<collectives::Communicator> communicator, std::string algorithm)
      : deps_(deps),
        options_(options),
        communicator_(std::move(communicator)),
        name_("collective." + algorithm) {}

  ~CollectiveExchange() override { work_.Drain(); }

  std::string_view name() const override { return name_; }
  Outcome outcome() const override { return Outcome::kSummedGradients; }

  // The weight travels behind the last layer's gradients, so that its sum costs no message.
  void BeginStep(Step, double weight) override {
    held_back_.clear();
    Tail()[0] = static_cast<float>(weight);
  }

  void Begin(Step step, Bucket& bucket) override {
    if (options_.spec.overlap) {
      Post(step, bucket);
    } else {
      held_back_.push_back(&bucket);
    }
  }

  absl::StatusOr<StepExchange> FinishStep(Step step, bool overflow) override {
    const Nanos begins = deps_.loop.Now();
    for (Bucket* bucket : held_back_) {
      Post(step, *bucket);
    }
    // The collectives have deadlines of their own that name whom they wait for; this one is behind
    // them.
    const Nanos behind = std::chrono::seconds(10);
    RETURN_IF_ERROR(
        work_.Wait(options_.timeout * (1 + bucket_count_) + behind, "the collectives of the step"));
    return StepExchange{.exposed = deps_.loop.Now() - begins,
                        .weight_sum = static_cast<double>(Tail()[0]),
                        .overflow = overflow};
  }

  bool Finished(Step step, Step steps) const override { return step >= steps; }
  absl::Status Leave() override { return absl::OkStatus(); }
  absl::Status FetchFinal() override { return absl::OkStatus(); }

 private:
  struct Call {
    compute::TensorView buffer;
    collectives::CallTag tag;
  };

  float* Tail() {
    return reinterpret_cast<float*>(deps_.model.gradients().data) + deps_.model.parameter_count();
  }

  void Post(Step step, const Bucket& bucket) {
    compute::TensorView buffer = bucket.gradients;
    if (bucket.end == deps_.model.parameter_count()) {
      buffer.shape[0] += kGradientTail;
    }
    bucket_count_ = std::max(bucket_count_, bucket.index + 1);
    work_.Begin();
    deps_.loop.Post([this, call = Call{buffer, {.step = step, .bucket = bucket.index}}] {
      queue_.push_back(call);
      if (queue_.size() == 1) {
        RunNext();
      }
    });
  }

  // On the loop.
  void RunNext() {
    const Call& call = queue_.front();
    communicator_->AllReduce(call.buffer, compute::ReduceOp::kSum, call.tag,
                             [this](absl::Status status) {
                               queue_.pop_front();
                               if (!queue_.empty()) {
                                 RunNext();
                               }
                               work_.End(status);
                             });
  }

  const ExchangeDeps deps_;
  const ExchangeOptions options_;
  std::unique_ptr<collectives::Communicator> communicator_;  // on the loop
  const std::string name_;
  std::vector<Bucket*> held_back_;  // without overlap: begun in FinishStep
  int bucket_count_ = 0;
  std::deque<Call> queue_;  // on the loop; the front one runs
  LoopWork work_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<GradientExchange>> MakeCollectiveExchange(
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
