// One rank's list as a builder writes it: ops in the order in which a sequential rank would do
// them. Each waits for those before it that it shares a chunk with, one of them writing, and for
// nothing that already follows from others.
#pragma once

#include <utility>
#include <vector>

#include "collectives/schedule/conflicts.h"
#include "collectives/schedule/finished_before.h"
#include "collectives/schedule/schedule.h"

namespace ranklab::collectives {

struct Chunks {
  std::int32_t first = 0;
  std::int32_t count = 1;
};

// An op on no chunks is none. Cost: as FinishedBefore.
class OpList {
 public:
  explicit OpList(std::int32_t chunks) : conflicts_(chunks) {}

  void Send(Rank to, Chunks chunks, std::int32_t channel = 0) {
    AddMessage(OpKind::kSend, to, chunks, channel);
  }
  void Recv(Rank from, Chunks chunks, std::int32_t channel = 0) {
    AddMessage(OpKind::kRecv, from, chunks, channel);
  }
  void RecvReduce(Rank from, Chunks chunks, std::int32_t channel = 0) {
    AddMessage(OpKind::kRecvReduce, from, chunks, channel);
  }
  void Copy(Chunks target, std::int32_t source, std::int32_t channel = 0) {
    AddLocal(OpKind::kCopy, target, source, channel);
  }
  void Reduce(Chunks target, std::int32_t source, std::int32_t channel = 0) {
    AddLocal(OpKind::kReduce, target, source, channel);
  }

  // `after` is filled in here.
  void Add(Op op);

  OpIndex size() const { return static_cast<OpIndex>(ops_.size()); }
  std::vector<Op> Take() { return std::move(ops_); }

 private:
  void AddMessage(OpKind kind, Rank peer, Chunks chunks, std::int32_t channel);
  void AddLocal(OpKind kind, Chunks target, std::int32_t source, std::int32_t channel);

  ConflictScan conflicts_;
  FinishedBefore finished_;
  std::vector<Op> ops_;
};

}  // namespace ranklab::collectives
