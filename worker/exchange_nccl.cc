// The training thread queues, the GPU orders: NCCL's queue waits for the gradients of a bucket
// where they are computed, and the optimizer for NCCL's queue. The thread itself waits in
// FinishStep alone, with a deadline, for both.
#include "worker/exchange_nccl.h"

#include <array>
#include <utility>

#include "collectives/nccl/communicator.h"
#include "collectives/nccl/load.h"
#include "collectives/nccl/meeting.h"
#include "collectives/nccl/shared_gpu.h"
#include "compute/operations.h"
#include "core/check.h"
#include "core/status.h"
#include "worker/wire_gradients.h"

namespace ranklab::worker {
namespace {

namespace nccl = collectives::nccl;
using compute::TensorView;

class NcclExchange final : public GradientExchange {
 public:
  NcclExchange(const ExchangeDeps& deps, NcclDeps nccl, const ExchangeOptions& options,
               std::unique_ptr<nccl::Api> api, std::unique_ptr<nccl::Communicator> communicator,
               WireGradients wire)
      : deps_(deps),
        queues_(*nccl.queues),
        patience_(nccl.patience),
        options_(options),
        api_(std::move(api)),
        communicator_(std::move(communicator)),
        wire_(std::move(wire)) {}

  std::string_view name() const override { return "nccl"; }
  Outcome outcome() const override { return Outcome::kSummedGradients; }

  // The weight lies behind the gradients, and is summed with those of the last bucket.
  void BeginStep(Step, double weight) override {
    begun_.clear();
    bytes_ = 0;
    std::array<float, kGradientTail> tail{static_cast<float>(weight)};
    status_ = CopyFromHost(compute::HostView(tail), Tail());
  }

  void Begin(Step, Bucket& bucket) override {
    status_.Update(wire_.Round(bucket));
    if (begun_.empty()) {
      entered_ = patience_.Now();
    }
    begun_.push_back(&bucket);
    if (options_.spec.overlap) {
      Queue(bucket);
    }
  }

  absl::StatusOr<StepExchange> FinishStep(Step step, bool overflow) override {
    for (const Bucket* bucket : begun_) {
      if (!options_.spec.overlap) {
        Queue(*bucket);
      }
    }
    absl::StatusOr<StepExchange> finished = Finish(step);
    if (!finished.ok()) {
      // The others hang until the coordinator tells them to abort too; this one's share ends now.
      communicator_->Abort(finished.status());
      return Annotate(finished.status(), absl::StrFormat("step %d", step));
    }
    finished->overflow = overflow;
    return finished;
  }

  bool Finished(Step step, Step steps) const override { return step >= steps; }
  void ServerLost(Rank, Rank) override {}  // there is none
  absl::Status Leave() override { return absl::OkStatus(); }
  // All ranks are here: none has a call queued that another one lacks.
  absl::Status FetchFinal() override { return communicator_->Finish(); }

 private:
  TensorView Tail() const {
    const TensorView gradients = deps_.model.gradients();
    return {gradients.data + gradients.byte_count(),
            compute::DType::kFloat32,
            {kGradientTail, 1, 1, 1},
            gradients.device};
  }

  void Queue(const Bucket& bucket) {
    if (!status_.ok()) {
      return;
    }
    status_ = queues_.CommunicationWaitsForCompute();
    const bool last = bucket.end == deps_.model.parameter_count();
    TensorView sent = bucket.sent;
    if (last && sent.dtype == compute::DType::kFloat32) {
      sent.shape[0] += kGradientTail;
    } else if (last) {
      Sum(Tail());
    }
    Sum(sent);
  }

  void Sum(const TensorView& view) {
    if (status_.ok()) {
      status_ = communicator_->AllReduce(view, view, compute::ReduceOp::kSum);
      bytes_ += view.byte_count();
    }
  }

  // What the backward pass still needs is not the exchange's time.
  absl::StatusOr<StepExchange> Finish(Step step) {
    RETURN_IF_ERROR(std::exchange(status_, absl::OkStatus()));
    RETURN_IF_ERROR(communicator_->Wait([this] { return queues_.ComputeIsDone(); },
                                        "the device's backward pass"));
    const Nanos begins = patience_.Now();
    RETURN_IF_ERROR(
        communicator_->Wait([this] { return queues_.CommunicationIsDone(); },
                            absl::StrFormat("the all-reduce of %d buckets", begun_.size())));
    const Nanos ends = patience_.Now();
    RETURN_IF_ERROR(queues_.ComputeWaitsForCommunication());
    for (const Bucket* bucket : begun_) {
      RETURN_IF_ERROR(wire_.Widen(*bucket));
    }
    std::array<float, kGradientTail> tail{};
    RETURN_IF_ERROR(CopyToHost(Tail(), compute::HostView(tail)));
    Trace(step, ends);
    return StepExchange{.exposed = ends - begins, .weight_sum = tail[0]};
  }

  // One span for the buckets of the step: the host does not see when each of them was through.
  void Trace(Step step, Nanos ends) {
    deps_.trace.Record(CollectiveSpan{.rank = options_.rank,
                                      .sequence = ++steps_,
                                      .algorithm = "nccl",
                                      .step = step,
                                      .bytes = bytes_,
                                      .entered = entered_,
                                      .first_byte_in = entered_,
                                      .last_byte_out = ends,
                                      .left = ends});
  }

  const ExchangeDeps deps_;
  nccl::Queues& queues_;
  nccl::Patience& patience_;
  const ExchangeOptions options_;
  std::unique_ptr<nccl::Api> api_;
  std::unique_ptr<nccl::Communicator> communicator_;
  const WireGradients wire_;
  absl::Status status_;  // of the step: Begin cannot tell
  std::vector<const Bucket*> begun_;
  Bytes bytes_ = 0;
  Nanos entered_{};
  std::uint64_t steps_ = 0;
};

absl::Status CheckDevice(const NcclDeps& nccl, const ExchangeOptions& options) {
  if (nccl.queues == nullptr) {
    return Unimplemented(
        "exchange.kind nccl needs a GPU, and this worker's device is the cpu; with cluster.device: "
        "cuda on a machine that has one, or {kind: collective, algorithm: ring}");
  }
  if (options.shared_gpu && options.workers > experiment::kMostOnOneGpu) {
    return InvalidArgument("%d workers with cluster.shared_gpu; at most %d", options.workers,
                           experiment::kMostOnOneGpu);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<GradientExchange>> MakeNcclExchange(const ExchangeDeps& deps,
                                                                   NcclDeps nccl,
                                                                   const ExchangeOptions& options) {
  RETURN_IF_ERROR(CheckDevice(nccl, options));
  RETURN_IF_ERROR(options.shared_gpu ? nccl::ShareGpu() : nccl::UseGpuAlone());
  ASSIGN_OR_RETURN(auto api, nccl::Load());
  return MakeNcclExchange(deps, std::move(nccl), options, std::move(api));
}

absl::StatusOr<std::unique_ptr<GradientExchange>> MakeNcclExchange(const ExchangeDeps& deps,
                                                                   NcclDeps nccl,
                                                                   const ExchangeOptions& options,
                                                                   std::unique_ptr<nccl::Api> api) {
  RETURN_IF_ERROR(CheckDevice(nccl, options));
  ASSIGN_OR_RETURN(const std::string mine,
                   nccl::MakeToken(*api, options.rank, nccl.queues->device_id()));
  ASSIGN_OR_RETURN(const std::vector<std::string> tokens, nccl.share(mine));
  ASSIGN_OR_RETURN(const nccl::UniqueId id,
                   nccl::ReadTokens(tokens, options.workers, options.shared_gpu));
  ASSIGN_OR_RETURN(auto communicator,
                   nccl::Communicator::Make(*api, nccl.patience, id,
                                            {.ranks = options.workers,
                                             .rank = options.rank,
                                             .stream = nccl.queues->communication(),
                                             .timeout = options.timeout}));
  ASSIGN_OR_RETURN(WireGradients wire, WireGradients::Make(deps.model, options.wire));
  return std::make_unique<NcclExchange>(deps, std::move(nccl), options, std::move(api),
                                        std::move(communicator), std::move(wire));
}

}  // namespace ranklab::worker
