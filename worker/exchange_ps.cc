// Push gradients, pull parameters: each bucket is pushed when its last gradient is ready; after the
// last one the worker's clock moves and it pulls what the staleness bound lets it read.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/status_latch.h"
#include "ps/client.h"
#include "ps/placement.h"
#include "worker/exchange.h"
#include "worker/loop_work.h"

namespace ranklab::worker {
namespace {

using experiment::ParameterServerSpec;

std::string NameOf(const ParameterServerSpec& spec) {
  if (spec.staleness_bound == 0) {
    return "ps.bsp";
  }
  return spec.staleness_bound == ParameterServerSpec::kUnbounded ? "ps.async" : "ps.ssp";
}

class ParameterServerExchange final : public GradientExchange {
 public:
  ParameterServerExchange(const ExchangeDeps& deps, const ExchangeOptions& options)
      : deps_(deps),
        options_(options),
        spec_(std::get<ParameterServerSpec>(options.spec.kind)),
        name_(NameOf(spec_)),
        client_(deps.messenger,
                {.worker = options.rank,
                 .generation = options.generation,
                 .ranges = ps::CutEvenly(deps.model.parameter_count(), options.servers)}) {}

  ~ParameterServerExchange() override { work_.Drain(); }

  std::string_view name() const override { return name_; }
  Outcome outcome() const override { return Outcome::kUpdatedParameters; }

  void BeginStep(Step, double weight) override {
    held_back_.clear();
    weight_ = weight;
  }

  void Begin(Step step, Bucket& bucket) override {
    if (options_.spec.overlap) {
      Push(step, bucket);
    } else {
      held_back_.push_back(&bucket);
    }
  }

  absl::StatusOr<StepExchange> FinishStep(Step step, bool overflow) override {
    const Nanos begins = deps_.loop.Now();
    for (const Bucket* bucket : held_back_) {
      Push(step, *bucket);
    }
    work_.Begin();
    deps_.loop.Post([this, step, end = ps::StepEnd{weight_, overflow}] {
      client_.EndStep(step, end, [this](absl::Status status) { work_.End(status); });
    });
    // Requests on one connection are served in order, so the pull may follow at once: it reads what
    // was pushed before it.
    Pull(step + 1);
    RETURN_IF_ERROR(Wait());
    const std::int64_t bound = spec_.staleness_bound;
    const std::int64_t staleness = std::max<std::int64_t>(0, step - pulled_.clock);
    RANKLAB_CHECK(staleness <= bound, "read %d steps behind with a bound of %d", staleness, bound);
    return StepExchange{.exposed = deps_.loop.Now() - begins,
                        .staleness = staleness,
                        .weight_sum = weight_,
                        .overflow = pulled_.skipped};
  }

  // Asynchronously each worker's step is one update of every server.
  bool Finished(Step step, Step steps) const override {
    if (spec_.staleness_bound == 0) {
      return step >= steps;
    }
    return pulled_.version >= steps * options_.workers;
  }

  absl::Status Leave() override {
    if (spec_.staleness_bound == 0) {
      return absl::OkStatus();
    }
    work_.Begin();
    deps_.loop.Post([this] { client_.Leave([this](absl::Status status) { work_.End(status); }); });
    return Wait();
  }

  // Reading for step 1 is always allowed: nobody can be behind it.
  absl::Status FetchFinal() override {
    Pull(1);
    return Wait();
  }

 private:
  absl::Status Wait() {
    const absl::Status status = work_.Wait(options_.timeout, "the parameter servers");
    if (!absl::IsDeadlineExceeded(status)) {
      return status;
    }
    // Ask the loop whom; the transport is then aborted by the run, which ends what is open.
    StatusLatch asked;
    deps_.loop.Post(
        [&] { asked.Set(DeadlineExceeded("%s: %s", MessageOf(status), client_.WaitingFor())); });
    return asked.Wait(std::chrono::seconds(5), "the loop");
  }

  // On the loop: records a span a server, from now until it has answered.
  ps::ShareFn Traced(Span span) {
    span.rank = options_.rank;
    span.track = Track::kCommunication;
    span.begins = deps_.loop.Now();
    return [this, span](ps::Share share) mutable {
      span.ends = deps_.loop.Now();
      span.server = share.server;
      span.bytes = share.bytes;
      deps_.trace.Record(span);
    };
  }

  void Push(Step step, const Bucket& bucket) {
    const auto* gradients = reinterpret_cast<const float*>(bucket.gradients.data);
    work_.Begin();
    deps_.loop.Post([this, step, part = ps::KeyRange{bucket.begin, bucket.end},
                     index = bucket.index, gradients] {
      client_.Push(
          step, part, gradients, [this](absl::Status status) { work_.End(status); },
          Traced({.name = "push", .step = step, .bucket = index}));
    });
  }

  void Pull(Step step) {
    work_.Begin();
    deps_.loop.Post([this, step] {
      auto* parameters = reinterpret_cast<float*>(deps_.model.parameters().data);
      client_.Pull(
          step, {0, deps_.model.parameter_count()}, parameters,
          [this](absl::StatusOr<ps::Pulled> pulled) {
            if (pulled.ok()) {
              pulled_ = *pulled;
            }
            work_.End(pulled.status());
          },
          Traced({.name = "pull", .step = step}));
    });
  }

  const ExchangeDeps deps_;
  const ExchangeOptions options_;
  const ParameterServerSpec spec_;
  const std::string name_;
  ps::Client client_;  // on the loop
  double weight_ = 0;
  ps::Pulled pulled_;  // written on the loop, read after Wait
  std::vector<const Bucket*> held_back_;
  LoopWork work_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<GradientExchange>> MakeParameterServerExchange(
    const ExchangeDeps& deps, const ExchangeOptions& options) {
  if (options.servers < 1) {
    return InvalidArgument("exchange.kind ps needs cluster.servers of at least 1");
  }
  return std::make_unique<ParameterServerExchange>(deps, options);
}

}  // namespace ranklab::worker
