// NCCL for tests: the ranks of a world are objects of one process, reductions happen in host
// memory, and what real NCCL does badly it does too. A rank that does not come is waited for
// without end, calls that differ hang, nobody is told that another rank failed or aborted.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <absl/synchronization/mutex.h>

#include "collectives/nccl/api.h"

namespace ranklab::collectives::nccl {

// What a rank's calls are queued on.
struct FakeStream {
  int pending = 0;
};

class FakeWorld {
 public:
  // All thread safe.
  // `rank`'s communicators report `error` from now on.
  void FailAsync(Rank rank, Result error, std::string text);
  // The next initialisations end with `result` at once; or with this shape.
  void RefuseInit(Result result, std::string text);
  void MistakeShape(int ranks, Rank rank);

  bool IsFinished(const FakeStream& stream);
  int aborted(Rank rank);  // communicators that NCCL was told to abort, by their rank there
  int destroyed(Rank rank);
  int open_groups();  // GroupStart without GroupEnd

 private:
  friend class FakeNccl;

  enum class Kind { kAllReduce, kReduceScatter, kAllGather, kBroadcast, kReduce, kSend, kReceive };
  struct Operation {
    Kind kind{};
    Transfer transfer;
    compute::ReduceOp op{};
    Rank peer = 0;  // or the root
    FakeStream* stream = nullptr;
    bool done = false;
  };
  // What NCCL runs as one: the calls of a group, or a call.
  using Batch = std::vector<Operation>;
  struct Team;
  struct Member {
    Team* team = nullptr;
    Rank rank = 0;
    std::vector<Batch> queue;
    bool closed = false;  // finalized, aborted
  };
  struct Team {
    int ranks = 0;
    std::map<Rank, std::unique_ptr<Member>> members;
    bool complete() const { return static_cast<int>(members.size()) == ranks; }
  };
  struct Shrinking {
    std::unique_ptr<Team> team;
    std::map<Rank, Comm*> places;  // told where the new communicator is once all are there
  };

  Member& Join(Team& team, Rank rank);
  void Progress(Team& team);
  bool Step(Team& team);
  static bool RunCollective(const std::vector<Operation*>& calls);
  static bool RunPair(Team& team, Member& member, Operation& operation);

  absl::Mutex mutex_;
  std::map<std::array<char, 128>, std::unique_ptr<Team>> teams_;
  std::map<std::pair<Team*, std::vector<Rank>>, Shrinking> shrinking_;
  std::map<Rank, std::pair<Result, std::string>> async_;
  std::pair<Result, std::string> init_{Result::kSuccess, ""};
  std::pair<int, Rank> shape_{0, 0};
  std::map<Rank, int> aborted_;
  std::map<Rank, int> destroyed_;
  int open_groups_ = 0;
  char next_id_ = 1;
};

// The library as one rank's process sees it.
class FakeNccl final : public Api {
 public:
  explicit FakeNccl(FakeWorld& world) : world_(world) {}

  int version() const override { return 22809; }
  Result MakeUniqueId(UniqueId& id) override;
  Result Init(Comm& comm, int ranks, const UniqueId& id, Rank rank) override;
  Result AsyncError(Comm comm, Result& state) override;
  std::string LastError(Comm comm) override;
  Result Shape(Comm comm, int& ranks, Rank& rank) override;
  Result AllReduce(const Transfer& transfer, compute::ReduceOp op, Comm comm,
                   Stream stream) override;
  Result ReduceScatter(const Transfer& transfer, compute::ReduceOp op, Comm comm,
                       Stream stream) override;
  Result AllGather(const Transfer& transfer, Comm comm, Stream stream) override;
  Result Broadcast(const Transfer& transfer, Rank root, Comm comm, Stream stream) override;
  Result Reduce(const Transfer& transfer, compute::ReduceOp op, Rank root, Comm comm,
                Stream stream) override;
  Result Send(const Transfer& transfer, Rank to, Comm comm, Stream stream) override;
  Result Receive(const Transfer& transfer, Rank from, Comm comm, Stream stream) override;
  Result GroupStart() override;
  Result GroupEnd() override;
  Result Finalize(Comm comm) override;
  Result Destroy(Comm comm) override;
  Result Abort(Comm comm) override;
  Result Shrink(Comm comm, std::span<Rank> lost, Comm& smaller) override;

 private:
  Result Queue(Comm comm, FakeWorld::Operation operation);

  FakeWorld& world_;
  bool in_group_ = false;
  FakeWorld::Member* grouped_ = nullptr;
  FakeWorld::Batch group_;
};

}  // namespace ranklab::collectives::nccl
