#include "collectives/communicator.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "collectives/schedule/catalog.h"
#include "core/check.h"
#include "core/status.h"

namespace ranklab::collectives {
namespace {

constexpr Bytes kIdleLandings = 64 << 20;
// Pieces of a rank's block: a few, so that sending, receiving and reducing overlap, as long as they
// are worth a message each; then so many that one stays in the cache until it is reduced.
constexpr int kWantedPieces = 4;
constexpr Bytes kLeastPiece = 128 << 10;
constexpr Bytes kMostPiece = 512 << 10;
constexpr int kMostPieces = 64;

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

// For a buffer of `size` bytes on `ranks` ranks: see CommunicatorOptions.
int PiecesBySize(Bytes size, Bytes ranks) {
  const Bytes block = size / ranks;
  int pieces = 1;
  while (pieces < kMostPieces && (block > pieces * kMostPiece ||
                                  (pieces < kWantedPieces && block >= 2 * pieces * kLeastPiece))) {
    pieces *= 2;
  }
  return pieces;
}

const CatalogEntry& DefaultOf(Collective collective) {
  const auto catalog = Catalog();
  const auto first = std::find_if(catalog.begin(), catalog.end(), [&](const CatalogEntry& entry) {
    return entry.collective == collective;
  });
  RANKLAB_CHECK(first != catalog.end(), "no algorithm for %s", NameOf(collective));
  return *first;
}

}  // namespace

// What calls under way need, kept by them.
class Communicator::Core : public std::enable_shared_from_this<Core> {
 public:
  Core(const ExecutorDeps& deps, const ProcessGroup& group, const CommunicatorOptions& options)
      : deps_(deps), group_(group), options_(options), landings_(kIdleLandings) {}

  // Builds what the options name once, so that a mistake in them shows here.
  absl::Status CheckAlgorithm() const {
    for (const CatalogEntry& entry : Catalog()) {
      if (entry.name == options_.algorithm) {
        return entry.build(OptionsFor(0, ChunksFor(0))).status();
      }
    }
    return BuildNamed(options_.algorithm, Collective::kAllReduce, OptionsFor(0, ChunksFor(0)))
        .status();
  }

  struct Call {
    Collective collective = Collective::kAllReduce;
    CallBuffers buffers{};
    compute::ReduceOp op = compute::ReduceOp::kSum;
    Rank root = 0;
  };

  void Run(const Call& call, CallTag tag, DoneFn done) {
    const std::uint64_t sequence = next_sequence_++;
    const absl::StatusOr<const RankPlan*> plan =
        PlanOf(call.collective, call.root, ChunksFor(call.buffers.input.byte_count()));
    if (!plan.ok()) {
      Fail(plan.status());
      deps_.loop.Post(
          [done = std::move(done), status = plan.status()]() mutable { done(std::move(status)); });
      return;
    }
    Execute(
        deps_, group_,
        {.plan = **plan,
         .landings = landings_,
         .buffers = call.buffers,
         .sequence = sequence,
         .op = call.op,
         .deadline = deps_.loop.Now() + options_.timeout,
         .step = tag.step,
         .bucket = tag.bucket},
        [this](const absl::Status& status) { Fail(status); },
        [self = shared_from_this(), done = std::move(done)](absl::Status status) mutable {
          done(std::move(status));
        });
  }

  std::uint64_t next_sequence() const { return next_sequence_; }
  FailedFn on_failure;

 private:
  int ChunksFor(Bytes size) const {
    return options_.chunks_per_rank != 0
               ? options_.chunks_per_rank
               : PiecesBySize(size, static_cast<Bytes>(group_.members.size()));
  }

  BuildOptions OptionsFor(Rank root, int chunks) const {
    return {.group_size = static_cast<int>(group_.members.size()),
            .chunks_per_rank = chunks,
            .root = root,
            .channels = options_.channels,
            .ranks_per_node = options_.ranks_per_node};
  }

  // Made at the first call of its kind.
  absl::StatusOr<const RankPlan*> PlanOf(Collective collective, Rank root, int chunks) {
    const auto key = std::tuple(collective, root, chunks);
    const auto known = plans_.find(key);
    if (known != plans_.end()) {
      return &known->second;
    }
    const CatalogEntry* entry = FindAlgorithm(options_.algorithm, collective);
    ASSIGN_OR_RETURN(
        const Schedule schedule,
        (entry != nullptr ? *entry : DefaultOf(collective)).build(OptionsFor(root, chunks)));
    RankPlan plan = MakeRankPlan(schedule, group_.my_rank);
    return &plans_.emplace(key, std::move(plan)).first->second;
  }

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
  std::map<std::tuple<Collective, Rank, int>, RankPlan> plans_;  // by collective, root and chunks
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
  RETURN_IF_ERROR(core->CheckAlgorithm());
  return std::unique_ptr<Communicator>(new Communicator(std::move(core)));
}

Communicator::Communicator(std::shared_ptr<Core> core) : core_(std::move(core)) {}
Communicator::~Communicator() = default;

void Communicator::AllReduce(compute::TensorView buffer, compute::ReduceOp op, CallTag tag,
                             DoneFn done) {
  core_->Run({Collective::kAllReduce, {buffer}, op}, tag, std::move(done));
}

void Communicator::ReduceScatter(compute::TensorView buffer, compute::ReduceOp op, CallTag tag,
                                 DoneFn done) {
  core_->Run({Collective::kReduceScatter, {buffer}, op}, tag, std::move(done));
}

void Communicator::AllGather(compute::TensorView buffer, CallTag tag, DoneFn done) {
  core_->Run({Collective::kAllGather, {buffer}}, tag, std::move(done));
}

void Communicator::Broadcast(compute::TensorView buffer, Rank root, CallTag tag, DoneFn done) {
  core_->Run({.collective = Collective::kBroadcast, .buffers = {buffer}, .root = root}, tag,
             std::move(done));
}

void Communicator::Reduce(compute::TensorView buffer, compute::ReduceOp op, Rank root, CallTag tag,
                          DoneFn done) {
  core_->Run({Collective::kReduce, {buffer}, op, root}, tag, std::move(done));
}

void Communicator::Gather(compute::TensorView buffer, Rank root, CallTag tag, DoneFn done) {
  core_->Run({.collective = Collective::kGather, .buffers = {buffer}, .root = root}, tag,
             std::move(done));
}

void Communicator::Scatter(compute::TensorView buffer, Rank root, CallTag tag, DoneFn done) {
  core_->Run({.collective = Collective::kScatter, .buffers = {buffer}, .root = root}, tag,
             std::move(done));
}

void Communicator::AllToAll(compute::TensorView input, compute::TensorView output, CallTag tag,
                            DoneFn done) {
  core_->Run({Collective::kAllToAll, {input, output}}, tag, std::move(done));
}

void Communicator::AllToAllV(const CallBuffers& buffers, CallTag tag, DoneFn done) {
  core_->Run({Collective::kAllToAllV, buffers}, tag, std::move(done));
}

void Communicator::Barrier(CallTag tag, DoneFn done) {
  const compute::TensorView nothing{nullptr, compute::DType::kFloat32, {0, 1, 1, 1}, nullptr};
  core_->Run({Collective::kBarrier, {nothing}}, tag, std::move(done));
}

void Communicator::OnFailure(FailedFn failed) { core_->on_failure = std::move(failed); }

std::uint64_t Communicator::next_sequence() const { return core_->next_sequence(); }

}  // namespace ranklab::collectives
