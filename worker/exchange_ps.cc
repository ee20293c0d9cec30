// Push gradients, pull parameters: each bucket is pushed when its last gradient is ready; after the
// last one the worker's clock moves and it pulls what the staleness bound lets it read.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/check.h"
#include "core/log.h"
#include "core/seconds.h"
#include "core/status.h"
#include "ps/client.h"
#include "ps/placement.h"
#include "worker/exchange.h"

namespace ranklab::worker {
namespace {

using experiment::ParameterServerSpec;

std::string NameOf(const ParameterServerSpec& spec) {
  if (spec.staleness_bound == 0) {
    return "ps.bsp";
  }
  return spec.staleness_bound == ParameterServerSpec::kUnbounded ? "ps.async" : "ps.ssp";
}

// Runs `done` with the first error once both callbacks have run.
class BothDone {
 public:
  explicit BothDone(DoneFn done) : done_(std::move(done)) {}
  void End(const absl::Status& status) {
    status_.Update(status);
    if (--open_ == 0) {
      done_(status_);
    }
  }

 private:
  int open_ = 2;
  absl::Status status_;
  DoneFn done_;
};

class ParameterServerExchange final : public ExchangeMachine {
 public:
  ParameterServerExchange(const ExchangeDeps& deps, const ExchangeOptions& options)
      : deps_(deps),
        options_(options),
        spec_(std::get<ParameterServerSpec>(options.spec.kind)),
        name_(NameOf(spec_)),
        client_(deps.messenger,
                {.worker = options.rank,
                 .generation = options.generation,
                 .ranges = ps::CutEvenly(deps.model.parameter_count(), options.servers),
                 .wire = options.wire,
                 .survives = options.replicated}) {}

  std::string_view name() const override { return name_; }
  Outcome outcome() const override { return Outcome::kUpdatedParameters; }

  void BeginStep(double weight) override { weight_ = weight; }

  void Begin(Step step, const Bucket& bucket, DoneFn done) override {
    client_.Push(step, {bucket.begin, bucket.end}, bucket.sent.data, std::move(done),
                 Traced({.name = "push", .step = step, .bucket = bucket.index}));
  }

  // Requests on one connection are served in order, so the pull may follow at once: it reads what
  // was pushed before it.
  void EndStep(Step step, bool overflow, DoneFn done) override {
    const auto both = std::make_shared<BothDone>(std::move(done));
    const auto end = [both](const absl::Status& status) { both->End(status); };
    client_.EndStep(step, {weight_, overflow}, end);
    Pull(step + 1, end);
  }

  StepExchange Ended(Step step) const override {
    const std::int64_t bound = spec_.staleness_bound;
    const std::int64_t staleness = std::max<std::int64_t>(0, step - pulled_.clock);
    RANKLAB_CHECK(staleness <= bound, "read %d steps behind with a bound of %d", staleness, bound);
    return {.staleness = staleness, .weight_sum = weight_, .overflow = pulled_.skipped};
  }

  // Asynchronously each worker's step is one update of every server.
  bool Finished(Step step, Step steps) const override {
    if (spec_.staleness_bound == 0) {
      return step >= steps;
    }
    return pulled_.version >= steps * options_.workers;
  }

  void Leave(DoneFn done) override {
    if (spec_.staleness_bound == 0) {
      return done(absl::OkStatus());
    }
    client_.Leave(std::move(done));
  }

  // Reading for step 1 is always allowed: nobody can be behind it.
  void FetchFinal(DoneFn done) override { Pull(1, std::move(done)); }

  void ServerLost(Rank lost, Rank heir) override {
    if (options_.replicated) {
      lost_at_ = deps_.loop.Now();
      client_.Replace(lost, heir);
    }
  }

  Nanos PatienceWith(int) const override { return options_.timeout; }
  std::string WaitingFor() const override {
    return "the parameter servers: " + client_.WaitingFor();
  }

 private:
  // Records a span a server, from now until it has answered.
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

  void Pull(Step step, DoneFn done) {
    auto* parameters = deps_.copies != nullptr
                           ? deps_.copies->parameters()
                           : reinterpret_cast<float*>(deps_.model.parameters().data);
    client_.Pull(
        step, {0, deps_.model.parameter_count()}, parameters,
        [this, done = std::move(done)](absl::StatusOr<ps::Pulled> pulled) mutable {
          if (pulled.ok()) {
            pulled_ = *pulled;
            NoteRecovery();
          }
          done(pulled.status());
        },
        Traced({.name = "pull", .step = step}));
  }

  // A whole read needs every shard, so also that of the lost server's heir.
  void NoteRecovery() {
    if (lost_at_) {
      Log(LogLevel::kInfo, "all shards are served again, %.3f s after the news of the loss",
          SecondsOf(deps_.loop.Now() - *std::exchange(lost_at_, {})));
    }
  }

  const ExchangeDeps deps_;
  const ExchangeOptions options_;
  const ParameterServerSpec spec_;
  const std::string name_;
  ps::Client client_;
  double weight_ = 0;
  ps::Pulled pulled_;
  std::optional<Nanos> lost_at_;  // a server, and no whole read since
};

}  // namespace

absl::StatusOr<std::unique_ptr<ExchangeMachine>> MakeParameterServerExchange(
    const ExchangeDeps& deps, const ExchangeOptions& options) {
  if (options.servers < 1) {
    return InvalidArgument("exchange.kind ps needs cluster.servers of at least 1");
  }
  return std::make_unique<ParameterServerExchange>(deps, options);
}

}  // namespace ranklab::worker
