#include "collectives/schedule/ring.h"

#include <limits>
#include <utility>

#include "core/status.h"

namespace ranklab::collectives {
namespace {

// One rank's place in the ring and its list as it grows.
class RingList {
 public:
  RingList(const BuildOptions& options, Rank rank)
      : size_(options.group_size), per_rank_(options.chunks_per_rank), rank_(rank) {
    ops_.reserve(4 * static_cast<std::size_t>(size_ - 1) * static_cast<std::size_t>(per_rank_));
  }

  void ReduceScatter() {
    for (int step = 0; step + 1 < size_; ++step) {
      for (int piece = 0; piece < per_rank_; ++piece) {
        // What is sent was reduced in the step before.
        Add(OpKind::kSend, Next(), ChunkOf(rank_ - step - 1, piece),
            step == 0 ? -1 : IndexOf(step - 1, piece) + 1);
        Add(OpKind::kRecvReduce, Previous(), ChunkOf(rank_ - step - 2, piece), -1);
      }
    }
  }

  // After a reduce-scatter, each chunk that is received into was sent away partially reduced, in
  // the same step of that half.
  void AllGather(bool after_reduce_scatter) {
    const int first = after_reduce_scatter ? size_ - 1 : 0;
    for (int step = 0; step + 1 < size_; ++step) {
      for (int piece = 0; piece < per_rank_; ++piece) {
        Add(OpKind::kSend, Next(), ChunkOf(rank_ - step, piece),
            first + step == 0 ? -1 : IndexOf(first + step - 1, piece) + 1);
        Add(OpKind::kRecv, Previous(), ChunkOf(rank_ - step - 1, piece),
            after_reduce_scatter ? IndexOf(step, piece) : -1);
      }
    }
  }

  std::vector<Op> Take() { return std::move(ops_); }

 private:
  Rank Next() const { return (rank_ + 1) % size_; }
  Rank Previous() const { return (rank_ + size_ - 1) % size_; }

  // `block` may be as low as -size_.
  std::int32_t ChunkOf(int block, int piece) const {
    return (block + size_) % size_ * per_rank_ + piece;
  }

  // Where the send of (step, piece) stands; its receive follows.
  OpIndex IndexOf(int step, int piece) const { return 2 * (step * per_rank_ + piece); }

  void Add(OpKind kind, Rank peer, std::int32_t chunk, OpIndex after) {
    Op op{.kind = kind, .peer = peer, .chunk = chunk};
    if (after >= 0) {
      op.after.push_back(after);
    }
    ops_.push_back(std::move(op));
  }

  int size_;
  int per_rank_;
  Rank rank_;
  std::vector<Op> ops_;
};

absl::StatusOr<Schedule> BuildRing(Collective collective, const BuildOptions& options) {
  RETURN_IF_ERROR(CheckBuildOptions(options, std::numeric_limits<int>::max()));
  Schedule schedule;
  schedule.name = "ring";
  schedule.collective = collective;
  schedule.group_size = options.group_size;
  schedule.input_chunks = options.group_size * options.chunks_per_rank;
  schedule.digits = {options.group_size};
  schedule.ops_of = [collective, options](Rank rank) {
    RingList list(options, rank);
    if (collective != Collective::kAllGather) {
      list.ReduceScatter();
    }
    if (collective != Collective::kReduceScatter) {
      list.AllGather(collective == Collective::kAllReduce);
    }
    return list.Take();
  };
  return schedule;
}

}  // namespace

absl::StatusOr<Schedule> BuildRingAllReduce(const BuildOptions& options) {
  return BuildRing(Collective::kAllReduce, options);
}
absl::StatusOr<Schedule> BuildRingReduceScatter(const BuildOptions& options) {
  return BuildRing(Collective::kReduceScatter, options);
}
absl::StatusOr<Schedule> BuildRingAllGather(const BuildOptions& options) {
  return BuildRing(Collective::kAllGather, options);
}

}  // namespace ranklab::collectives
