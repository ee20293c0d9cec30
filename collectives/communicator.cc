#include "collectives/communicator.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "collectives/schedule/catalog.h"
#include "core/status.h"

namespace ranklab::collectives {
namespace {

constexpr Bytes kIdleLandings = 64 << 20;

absl::Status CheckGroup(const ProcessGroup& group, Endpoint self) {
  const auto size = static_cast<Rank>(group.members.size());
  if (group.my_rank < 0 || group.my_rank >= size) {
    return InvalidArgument("group %d: rank %d of %d members", group.id, group.my_rank, size);
  }
  const Endpoint mine{Role::kWorker, group.members[static_cast<std::size_t>(group.my_rank)]};
  if (mine != self) {
    return InvalidArgument("group %d: its rank %d is %s, but the transport is that of %s", group.id,
                           group.my_rank, NameOf(mine), NameOf(self));
  }
  std::vector<Rank> sorted = group.members;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end()) {
    return InvalidArgument("group %d has worker %d twice", group.id, *twice);
  }
  return absl::OkStatus();
}

}  // namespace

// What calls under way need, kept by them.
class Communicator::Core : public std::enable_shared_from_this<Core> {
 public:
  Core(const ExecutorDeps& deps, const ProcessGroup& group, const CommunicatorOptions& options)
      : deps_(deps), group_(group), options_(options), landings_(kIdleLandings) {}

  absl::Status MakePlans() {
    for (const Collective collective :
         {Collective::kAllReduce, Collective::kReduceScatter, Collective::kAllGather}) {
      ASSIGN_OR_RETURN(const Schedule schedule,
                       BuildNamed(options_.algorithm, collective,
                                  {.group_size = static_cast<int>(group_.members.size()),
                                   .chunks_per_rank = options_.chunks_per_rank}));
      plans_.emplace(collective, MakeRankPlan(schedule, group_.my_rank));
    }
    return absl::OkStatus();
  }

  void Run(Collective collective, const compute::TensorView& buffer, compute::ReduceOp op,
           CallTag tag, DoneFn done) {
    const CollectiveCall call{.plan = plans_.at(collective),
                              .landings = landings_,
                              .input = buffer,
                              .output = {},
                              .sequence = next_sequence_++,
                              .op = op,
                              .deadline = deps_.loop.Now() + options_.timeout,
                              .step = tag.step,
                              .bucket = tag.bucket};
    Execute(
        deps_, group_, call, [this](const absl::Status& status) { Fail(status); },
        [self = shared_from_this(), done = std::move(done)](absl::Status status) mutable {
          done(std::move(status));
        });
  }

  std::uint64_t next_sequence() const { return next_sequence_; }
  FailedFn on_failure;

 private:
  void Fail(const absl::Status& status) {
    if (on_failure) {
      on_failure(status);
    } else {
      deps_.transport.Abort(status);
    }
  }

  const ExecutorDeps deps_;
  const ProcessGroup group_;
  const CommunicatorOptions options_;
  std::map<Collective, RankPlan> plans_;
  transport::BufferPool landings_;
  std::uint64_t next_sequence_ = 1;
};

absl::StatusOr<std::unique_ptr<Communicator>> Communicator::Make(
    const ExecutorDeps& deps, const ProcessGroup& group, const CommunicatorOptions& options) {
  RETURN_IF_ERROR(CheckGroup(group, deps.transport.self()));
  if (options.timeout <= Nanos::zero()) {
    return InvalidArgument("a collective's timeout must be positive, it is %d ns",
                           options.timeout.count());
  }
  auto core = std::make_shared<Core>(deps, group, options);
  RETURN_IF_ERROR(core->MakePlans());
  return std::unique_ptr<Communicator>(new Communicator(std::move(core)));
}

Communicator::Communicator(std::shared_ptr<Core> core) : core_(std::move(core)) {}
Communicator::~Communicator() = default;

void Communicator::AllReduce(compute::TensorView buffer, compute::ReduceOp op, CallTag tag,
                             DoneFn done) {
  core_->Run(Collective::kAllReduce, buffer, op, tag, std::move(done));
}

void Communicator::ReduceScatter(compute::TensorView buffer, compute::ReduceOp op, CallTag tag,
                                 DoneFn done) {
  core_->Run(Collective::kReduceScatter, buffer, op, tag, std::move(done));
}

void Communicator::AllGather(compute::TensorView buffer, CallTag tag, DoneFn done) {
  core_->Run(Collective::kAllGather, buffer, compute::ReduceOp::kSum, tag, std::move(done));
}

void Communicator::OnFailure(FailedFn failed) { core_->on_failure = std::move(failed); }

std::uint64_t Communicator::next_sequence() const { return core_->next_sequence(); }

}  // namespace ranklab::collectives
