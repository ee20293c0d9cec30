#include "tests/collectives/nccl/fake_nccl.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "core/check.h"

namespace ranklab::collectives::nccl {
namespace {

// The upper half of a float32, cut off.
struct BFloat16 {
  std::uint16_t bits = 0;
  operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }  // NOLINT
  BFloat16& operator=(float value) {
    bits = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
    return *this;
  }
};

template <typename T, typename Number = T>
void ReduceInto(std::byte* target_bytes, const std::byte* source_bytes, std::int64_t count,
                compute::ReduceOp op) {
  T* target = reinterpret_cast<T*>(target_bytes);
  const T* source = reinterpret_cast<const T*>(source_bytes);
  for (std::int64_t i = 0; i < count; ++i) {
    const Number a = target[i];
    const Number b = source[i];
    target[i] = op == compute::ReduceOp::kSum   ? a + b
                : op == compute::ReduceOp::kMax ? std::max(a, b)
                                                : std::min(a, b);
  }
}

Bytes BytesOf(const Transfer& transfer) { return transfer.count * compute::SizeOf(transfer.dtype); }

// Elements [begin, begin + count) of what all send, reduced in rank order.
std::vector<std::byte> Reduced(const std::vector<const Transfer*>& sent, compute::ReduceOp op,
                               std::int64_t begin, std::int64_t count) {
  const Bytes size = compute::SizeOf(sent[0]->dtype);
  std::vector<std::byte> sum(static_cast<std::size_t>(count * size));
  for (std::size_t rank = 0; rank < sent.size(); ++rank) {
    const auto* source = static_cast<const std::byte*>(sent[rank]->send) + begin * size;
    if (rank == 0) {
      std::memcpy(sum.data(), source, sum.size());
    } else if (sent[0]->dtype == compute::DType::kFloat32) {
      ReduceInto<float>(sum.data(), source, count, op);
    } else if (sent[0]->dtype == compute::DType::kInt32) {
      ReduceInto<std::int32_t>(sum.data(), source, count, op);
    } else {
      RANKLAB_CHECK(sent[0]->dtype == compute::DType::kBFloat16, "the fake has no float16");
      ReduceInto<BFloat16, float>(sum.data(), source, count, op);
    }
  }
  return sum;
}

void Put(const std::vector<std::byte>& bytes, void* place) {
  if (!bytes.empty()) {  // a rank that receives nothing
    std::memcpy(place, bytes.data(), bytes.size());
  }
}

FakeStream* Of(Stream stream) { return static_cast<FakeStream*>(stream); }

}  // namespace

void FakeWorld::FailAsync(Rank rank, Result error, std::string text) {
  absl::MutexLock lock(&mutex_);
  async_[rank] = {error, std::move(text)};
}

void FakeWorld::RefuseInit(Result result, std::string text) {
  absl::MutexLock lock(&mutex_);
  init_ = {result, std::move(text)};
}

void FakeWorld::MistakeShape(int ranks, Rank rank) {
  absl::MutexLock lock(&mutex_);
  shape_ = {ranks, rank};
}

bool FakeWorld::IsFinished(const FakeStream& stream) {
  absl::MutexLock lock(&mutex_);
  return stream.pending == 0;
}

int FakeWorld::aborted(Rank rank) {
  absl::MutexLock lock(&mutex_);
  return aborted_[rank];
}

int FakeWorld::destroyed(Rank rank) {
  absl::MutexLock lock(&mutex_);
  return destroyed_[rank];
}

int FakeWorld::open_groups() {
  absl::MutexLock lock(&mutex_);
  return open_groups_;
}

FakeWorld::Member& FakeWorld::Join(Team& team, Rank rank) {
  auto& member = team.members[rank];
  RANKLAB_CHECK(member == nullptr, "rank %d twice", rank);
  member = std::make_unique<Member>(Member{.team = &team, .rank = rank, .queue = {}});
  return *member;
}

void FakeWorld::Progress(Team& team) {
  while (Step(team)) {
  }
}

// Runs what can run of the first batches; false: nothing could.
bool FakeWorld::Step(Team& team) {
  if (!team.complete()) {
    return false;
  }
  bool moved = false;
  std::vector<Operation*> calls;
  for (auto& [rank, member] : team.members) {
    if (member->closed || member->queue.empty()) {
      continue;
    }
    for (Operation& operation : member->queue.front()) {
      if (operation.kind == Kind::kSend && !operation.done) {
        moved |= RunPair(team, *member, operation);
      } else if (operation.kind != Kind::kReceive && operation.kind != Kind::kSend &&
                 !operation.done) {
        calls.push_back(&operation);
        break;  // the collectives of a group one after the other
      }
    }
  }
  moved |= static_cast<int>(calls.size()) == team.ranks && RunCollective(calls);
  for (auto& [rank, member] : team.members) {
    auto& queue = member->queue;
    if (!queue.empty() && std::all_of(queue.front().begin(), queue.front().end(),
                                      [](const Operation& one) { return one.done; })) {
      for (const Operation& one : queue.front()) {
        --one.stream->pending;
      }
      queue.erase(queue.begin());
    }
  }
  return moved;
}

bool FakeWorld::RunPair(Team& team, Member& member, Operation& operation) {
  const auto found = team.members.find(operation.peer);
  if (found == team.members.end() || found->second->queue.empty()) {
    return false;
  }
  for (Operation& other : found->second->queue.front()) {
    if (other.kind == Kind::kReceive && other.peer == member.rank && !other.done &&
        BytesOf(other.transfer) == BytesOf(operation.transfer)) {
      std::memcpy(other.transfer.receive, operation.transfer.send,
                  static_cast<std::size_t>(BytesOf(operation.transfer)));
      operation.done = other.done = true;
      return true;
    }
  }
  return false;
}

bool FakeWorld::RunCollective(const std::vector<Operation*>& calls) {
  const Operation& first = *calls[0];
  const std::int64_t count = first.transfer.count;
  const Bytes block = BytesOf(first.transfer);
  std::vector<const Transfer*> sent;
  for (const Operation* call : calls) {
    if (call->kind != first.kind || call->transfer.count != count ||
        call->transfer.dtype != first.transfer.dtype || call->op != first.op ||
        call->peer != first.peer) {
      return false;  // as NCCL: hangs
    }
    sent.push_back(&call->transfer);
  }
  // First all results, then all writes: a buffer may be both.
  std::vector<std::vector<std::byte>> results(calls.size());
  for (std::size_t rank = 0; rank < calls.size(); ++rank) {
    if (first.kind == Kind::kReduceScatter) {
      results[rank] = Reduced(sent, first.op, static_cast<std::int64_t>(rank) * count, count);
    } else if (first.kind == Kind::kAllReduce ||
               (first.kind == Kind::kReduce && static_cast<Rank>(rank) == first.peer)) {
      results[rank] = Reduced(sent, first.op, 0, count);
    } else if (first.kind == Kind::kBroadcast) {
      const auto* root =
          static_cast<const std::byte*>(sent[static_cast<std::size_t>(first.peer)]->send);
      results[rank].assign(root, root + block);
    } else if (first.kind == Kind::kAllGather) {
      for (const Transfer* one : sent) {
        const auto* source = static_cast<const std::byte*>(one->send);
        results[rank].insert(results[rank].end(), source, source + block);
      }
    }
  }
  for (std::size_t rank = 0; rank < calls.size(); ++rank) {
    Put(results[rank], calls[rank]->transfer.receive);
    calls[rank]->done = true;
  }
  return true;
}

Result FakeNccl::MakeUniqueId(UniqueId& id) {
  absl::MutexLock lock(&world_.mutex_);
  id.bytes.fill(world_.next_id_++);
  return Result::kSuccess;
}

Result FakeNccl::Init(Comm& comm, int ranks, const UniqueId& id, Rank rank) {
  absl::MutexLock lock(&world_.mutex_);
  auto& team = world_.teams_[id.bytes];
  if (team == nullptr) {
    team = std::make_unique<FakeWorld::Team>(FakeWorld::Team{.ranks = ranks, .members = {}});
  }
  comm = &world_.Join(*team, rank);
  return world_.init_.first == Result::kSuccess ? Result::kInProgress : world_.init_.first;
}

Result FakeNccl::AsyncError(Comm comm, Result& state) {
  absl::MutexLock lock(&world_.mutex_);
  auto& member = *static_cast<FakeWorld::Member*>(comm);
  const auto failed = world_.async_.find(member.rank);
  if (failed != world_.async_.end()) {
    state = failed->second.first;
  } else {
    state = member.team->complete() ? Result::kSuccess : Result::kInProgress;
  }
  return Result::kSuccess;
}

std::string FakeNccl::LastError(Comm comm) {
  absl::MutexLock lock(&world_.mutex_);
  const auto failed = world_.async_.find(static_cast<FakeWorld::Member*>(comm)->rank);
  return failed == world_.async_.end() ? world_.init_.second : failed->second.second;
}

Result FakeNccl::Shape(Comm comm, int& ranks, Rank& rank) {
  absl::MutexLock lock(&world_.mutex_);
  const auto& member = *static_cast<FakeWorld::Member*>(comm);
  ranks = world_.shape_.first > 0 ? world_.shape_.first : member.team->ranks;
  rank = world_.shape_.first > 0 ? world_.shape_.second : member.rank;
  return Result::kSuccess;
}

Result FakeNccl::AllReduce(const Transfer& transfer, compute::ReduceOp op, Comm comm,
                           Stream stream) {
  return Queue(
      comm,
      {.kind = FakeWorld::Kind::kAllReduce, .transfer = transfer, .op = op, .stream = Of(stream)});
}

Result FakeNccl::ReduceScatter(const Transfer& transfer, compute::ReduceOp op, Comm comm,
                               Stream stream) {
  return Queue(comm, {.kind = FakeWorld::Kind::kReduceScatter,
                      .transfer = transfer,
                      .op = op,
                      .stream = Of(stream)});
}

Result FakeNccl::AllGather(const Transfer& transfer, Comm comm, Stream stream) {
  return Queue(comm,
               {.kind = FakeWorld::Kind::kAllGather, .transfer = transfer, .stream = Of(stream)});
}

Result FakeNccl::Broadcast(const Transfer& transfer, Rank root, Comm comm, Stream stream) {
  return Queue(comm, {.kind = FakeWorld::Kind::kBroadcast,
                      .transfer = transfer,
                      .peer = root,
                      .stream = Of(stream)});
}

Result FakeNccl::Reduce(const Transfer& transfer, compute::ReduceOp op, Rank root, Comm comm,
                        Stream stream) {
  return Queue(comm, {.kind = FakeWorld::Kind::kReduce,
                      .transfer = transfer,
                      .op = op,
                      .peer = root,
                      .stream = Of(stream)});
}

Result FakeNccl::Send(const Transfer& transfer, Rank to, Comm comm, Stream stream) {
  return Queue(
      comm,
      {.kind = FakeWorld::Kind::kSend, .transfer = transfer, .peer = to, .stream = Of(stream)});
}

Result FakeNccl::Receive(const Transfer& transfer, Rank from, Comm comm, Stream stream) {
  return Queue(comm, {.kind = FakeWorld::Kind::kReceive,
                      .transfer = transfer,
                      .peer = from,
                      .stream = Of(stream)});
}

Result FakeNccl::Queue(Comm comm, FakeWorld::Operation operation) {
  absl::MutexLock lock(&world_.mutex_);
  auto& member = *static_cast<FakeWorld::Member*>(comm);
  if (member.closed) {
    return Result::kInvalidUsage;
  }
  ++operation.stream->pending;
  if (in_group_) {
    grouped_ = &member;
    group_.push_back(operation);
  } else {
    member.queue.push_back({operation});
    world_.Progress(*member.team);
  }
  return Result::kSuccess;
}

Result FakeNccl::GroupStart() {
  absl::MutexLock lock(&world_.mutex_);
  ++world_.open_groups_;
  in_group_ = true;
  return Result::kSuccess;
}

Result FakeNccl::GroupEnd() {
  absl::MutexLock lock(&world_.mutex_);
  --world_.open_groups_;
  in_group_ = false;
  if (grouped_ != nullptr) {
    grouped_->queue.push_back(std::exchange(group_, {}));
    world_.Progress(*grouped_->team);
    grouped_ = nullptr;
  }
  return Result::kSuccess;
}

Result FakeNccl::Finalize(Comm comm) {
  absl::MutexLock lock(&world_.mutex_);
  static_cast<FakeWorld::Member*>(comm)->closed = true;
  return Result::kInProgress;
}

Result FakeNccl::Destroy(Comm comm) {
  absl::MutexLock lock(&world_.mutex_);
  ++world_.destroyed_[static_cast<FakeWorld::Member*>(comm)->rank];
  return Result::kSuccess;
}

Result FakeNccl::Abort(Comm comm) {
  absl::MutexLock lock(&world_.mutex_);
  auto& member = *static_cast<FakeWorld::Member*>(comm);
  ++world_.aborted_[member.rank];
  member.closed = true;
  for (const FakeWorld::Batch& batch : member.queue) {
    for (const FakeWorld::Operation& operation : batch) {
      --operation.stream->pending;
    }
  }
  member.queue.clear();
  return Result::kSuccess;
}

Result FakeNccl::Shrink(Comm comm, std::span<Rank> lost, Comm& smaller) {
  absl::MutexLock lock(&world_.mutex_);
  auto& member = *static_cast<FakeWorld::Member*>(comm);
  const std::vector<Rank> key(lost.begin(), lost.end());
  auto& shrinking = world_.shrinking_[{member.team, key}];
  if (shrinking.team == nullptr) {
    shrinking.team = std::make_unique<FakeWorld::Team>(
        FakeWorld::Team{.ranks = member.team->ranks - static_cast<int>(key.size()), .members = {}});
  }
  const auto below =
      std::count_if(key.begin(), key.end(), [&](Rank rank) { return rank < member.rank; });
  const Rank rank = member.rank - static_cast<Rank>(below);
  world_.Join(*shrinking.team, rank);
  world_.async_.erase(member.rank);
  shrinking.places[rank] = &smaller;
  if (shrinking.team->complete()) {
    for (const auto& [one, place] : shrinking.places) {
      *place = shrinking.team->members[one].get();
    }
  }
  return Result::kInProgress;
}

}  // namespace ranklab::collectives::nccl
