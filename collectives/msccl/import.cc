#include "collectives/msccl/import.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "collectives/msccl/dry_run.h"
#include "collectives/msccl/memory_map.h"
#include "collectives/schedule/conflicts.h"
#include "collectives/schedule/finished_before.h"
#include "collectives/schedule/op_list.h"
#include "core/status.h"

namespace ranklab::collectives {
namespace {

absl::Status CheckDependency(const MscclProgram& program, const MscclPlace& place,
                             const MscclStep& step) {
  if (step.after_threadblock < 0) {
    return absl::OkStatus();
  }
  const auto& threadblocks = program.gpus[static_cast<std::size_t>(place.gpu)].threadblocks;
  const auto other = static_cast<std::size_t>(step.after_threadblock);
  if (other >= threadblocks.size() || step.after_threadblock == place.threadblock ||
      step.after_step < 0 ||
      static_cast<std::size_t>(step.after_step) >= threadblocks[other].steps.size()) {
    return WrongAt(place, absl::StrFormat("depends on threadblock %d, step %d, which is not there",
                                          step.after_threadblock, step.after_step));
  }
  if (!threadblocks[other].steps[static_cast<std::size_t>(step.after_step)].is_waited_for) {
    return WrongAt(place, absl::StrFormat("depends on threadblock %d, step %d, whose hasdep is 0",
                                          step.after_threadblock, step.after_step));
  }
  return absl::OkStatus();
}

absl::Status CheckPeers(const MscclProgram& program, const MscclPlace& place,
                        const MscclThreadblock& threadblock, const MscclStep& step) {
  const auto gpus = static_cast<Rank>(program.gpus.size());
  const auto is_peer = [&](Rank peer) { return peer >= 0 && peer < gpus && peer != place.gpu; };
  if (Sends(step.type) && !is_peer(threadblock.send)) {
    return WrongAt(place, absl::StrFormat("%s sends, but the threadblock's send is %d",
                                          NameOf(step.type), threadblock.send));
  }
  if (Receives(step.type) && !is_peer(threadblock.recv)) {
    return WrongAt(place, absl::StrFormat("%s receives, but the threadblock's recv is %d",
                                          NameOf(step.type), threadblock.recv));
  }
  if (threadblock.channel >= program.channels) {
    return WrongAt(place, absl::StrFormat("chan is %d, but nchannels is %d", threadblock.channel,
                                          program.channels));
  }
  return absl::OkStatus();
}

// A number for each connection that is used, and the one thread block at each end.
class Connections {
 public:
  absl::Status Add(const MscclPlace& place, const MscclThreadblock& threadblock,
                   const MscclStep& step) {
    if (Sends(step.type)) {
      RETURN_IF_ERROR(AddEnd(senders_, {place.gpu, threadblock.send, threadblock.channel}, place));
    }
    if (Receives(step.type)) {
      RETURN_IF_ERROR(
          AddEnd(receivers_, {threadblock.recv, place.gpu, threadblock.channel}, place));
    }
    return absl::OkStatus();
  }

  std::int32_t NumberOf(const Connection& connection) const { return numbers_.at(connection); }
  std::int32_t size() const { return static_cast<std::int32_t>(numbers_.size()); }

 private:
  using Ends = std::map<Connection, std::int32_t>;  // the thread block

  absl::Status AddEnd(Ends& ends, const Connection& connection, const MscclPlace& place) {
    numbers_.try_emplace(connection, size());
    const auto [end, first] = ends.try_emplace(connection, place.threadblock);
    if (!first && end->second != place.threadblock) {
      return WrongAt(place,
                     absl::StrFormat("threadblock %d already has the connection from gpu %d to "
                                     "gpu %d on channel %d",
                                     end->second, std::get<0>(connection), std::get<1>(connection),
                                     std::get<2>(connection)));
    }
    return absl::OkStatus();
  }

  std::map<Connection, std::int32_t> numbers_;
  Ends senders_;
  Ends receivers_;
};

// What a thread block's rrs steps reduce in.
std::int32_t WorkspaceOf(const MscclThreadblock& threadblock) {
  std::int32_t most = 0;
  for (const MscclStep& step : threadblock.steps) {
    most = step.type == MscclStepType::kRecvReduceSend ? std::max(most, step.count) : most;
  }
  return most;
}

std::int32_t WorkspaceOf(const MscclGpu& gpu) {
  std::int32_t sum = 0;
  for (const MscclThreadblock& threadblock : gpu.threadblocks) {
    sum += WorkspaceOf(threadblock);
  }
  return sum;
}

// The ops of one GPU, step by step in the order of the dry run.
class GpuOps {
 public:
  struct Deps {
    const MscclProgram& program;
    const MemoryMap& map;
    const Connections& connections;
    std::int32_t chunks = 0;  // of the schedule
  };

  GpuOps(const Deps& deps, const MscclGpu& gpu)
      : deps_(deps), list_(deps.chunks), conflicts_(deps.chunks) {
    std::int32_t workspace =
        deps.map.input_chunks() + deps.map.output_chunks() + deps.map.scratch_chunks();
    for (const MscclThreadblock& threadblock : gpu.threadblocks) {
      workspaces_.push_back(workspace);
      workspace += WorkspaceOf(threadblock);
      nodes_.emplace_back();
    }
  }

  absl::Status Add(const MscclPlace& place, const MscclThreadblock& threadblock) {
    const MscclStep& step = deps_.program.StepAt(place);
    Order(place, step);
    ASSIGN_OR_RETURN(const std::vector<Op> ops, OpsOf(place, threadblock, step));
    for (const Op& op : ops) {
      RETURN_IF_ERROR(CheckOrder(place, op));
      list_.Add(op);
      origins_.push_back(place);
    }
    return absl::OkStatus();
  }

  std::vector<Op> TakeOps() { return list_.Take(); }
  std::vector<MscclPlace> TakeOrigins() { return std::move(origins_); }

 private:
  // A step runs after the one before it in its thread block and after the one it depends on.
  void Order(const MscclPlace& place, const MscclStep& step) {
    const auto node = static_cast<OpIndex>(places_.size());
    std::vector<OpIndex>& own = nodes_[static_cast<std::size_t>(place.threadblock)];
    finished_.Append(place.threadblock);
    if (!own.empty()) {
      finished_.WaitFor(own.back());
    }
    if (step.after_threadblock >= 0) {
      finished_.WaitFor(nodes_[static_cast<std::size_t>(step.after_threadblock)]
                              [static_cast<std::size_t>(step.after_step)]);
    }
    own.push_back(node);
    places_.push_back(place);
  }

  absl::Status CheckOrder(const MscclPlace& place, const Op& op) {
    const auto node = static_cast<OpIndex>(places_.size()) - 1;
    for (const auto& [earlier, chunk] : conflicts_.Next(node, op)) {
      if (!finished_.Contains(node, earlier)) {
        return WrongAt(place,
                       absl::StrFormat("may overlap with %s: both use chunk %d, and no dependency "
                                       "orders them",
                                       NameOf(places_[static_cast<std::size_t>(earlier)]), chunk));
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<Op>> OpsOf(const MscclPlace& place,
                                        const MscclThreadblock& threadblock,
                                        const MscclStep& step) const {
    const MscclStepType type = step.type;
    if (type == MscclStepType::kNop) {
      return std::vector<Op>();
    }
    const bool has_source = type != MscclStepType::kRecv && type != MscclStepType::kRecvCopySend;
    const bool has_target = type != MscclStepType::kSend && type != MscclStepType::kRecvReduceSend;
    std::int32_t source = -1;
    std::int32_t target = workspaces_[static_cast<std::size_t>(place.threadblock)];
    if (has_source) {
      ASSIGN_OR_RETURN(source, ChunkAt(place, step.source, step.source_offset, step.count));
    }
    if (has_target) {
      ASSIGN_OR_RETURN(target,
                       ChunkAt(place, step.destination, step.destination_offset, step.count));
    }
    return OpsOf(place, threadblock, step, source, type == MscclStepType::kSend ? source : target);
  }

  // A copy, a receive or reduction into `target`, a send of it: as many of these as the type has.
  std::vector<Op> OpsOf(const MscclPlace& place, const MscclThreadblock& threadblock,
                        const MscclStep& step, std::int32_t source, std::int32_t target) const {
    const MscclStepType type = step.type;
    const std::int32_t local = deps_.connections.size() + place.threadblock;
    const bool reduces_message = Reduces(type) && Receives(type);
    std::vector<Op> ops;
    const auto add_local = [&](OpKind kind) {
      ops.push_back(
          {.kind = kind, .chunk = target, .count = step.count, .source = source, .channel = local});
    };
    const auto add_message = [&](OpKind kind, Rank peer, const Connection& connection) {
      ops.push_back({.kind = kind,
                     .peer = peer,
                     .chunk = target,
                     .count = step.count,
                     .channel = deps_.connections.NumberOf(connection)});
    };
    if ((type == MscclStepType::kCopy || reduces_message) && source != target) {
      add_local(OpKind::kCopy);
    }
    if (type == MscclStepType::kReduce) {
      add_local(OpKind::kReduce);
    }
    if (Receives(type)) {
      add_message(reduces_message ? OpKind::kRecvReduce : OpKind::kRecv, threadblock.recv,
                  {threadblock.recv, place.gpu, threadblock.channel});
    }
    if (Sends(type)) {
      add_message(OpKind::kSend, threadblock.send,
                  {place.gpu, threadblock.send, threadblock.channel});
    }
    return ops;
  }

  absl::StatusOr<std::int32_t> ChunkAt(const MscclPlace& place, MscclBuffer buffer,
                                       std::int32_t offset, std::int32_t count) const {
    auto chunk = deps_.map.ChunkAt(place.gpu, buffer, offset, count);
    return chunk.ok() ? chunk : Annotate(chunk.status(), NameOf(place));
  }

  const Deps deps_;
  OpList list_;
  ConflictScan conflicts_;                   // between steps
  FinishedBefore finished_;                  // of steps
  std::vector<MscclPlace> places_;           // of the steps so far
  std::vector<std::vector<OpIndex>> nodes_;  // by thread block and step: its place in places_
  std::vector<std::int32_t> workspaces_;     // by thread block
  std::vector<MscclPlace> origins_;          // by op
};

struct Lists {
  std::vector<std::vector<Op>> ops;
  std::vector<std::vector<MscclPlace>> origins;
};

absl::StatusOr<Lists> ListsOf(const MscclProgram& program, const GpuOps::Deps& deps) {
  ASSIGN_OR_RETURN(const std::vector<MscclPlace> order, OrderOfSteps(program));
  std::deque<GpuOps> gpus;
  for (const MscclGpu& gpu : program.gpus) {
    gpus.emplace_back(deps, gpu);
  }
  for (const MscclPlace& place : order) {
    const auto gpu = static_cast<std::size_t>(place.gpu);
    RETURN_IF_ERROR(gpus[gpu].Add(place, program.ThreadblockAt(place)));
  }
  Lists lists;
  for (GpuOps& gpu : gpus) {
    lists.ops.push_back(gpu.TakeOps());
    lists.origins.push_back(gpu.TakeOrigins());
  }
  return lists;
}

}  // namespace

absl::StatusOr<Schedule> ScheduleOf(const MscclProgram& program) {
  ASSIGN_OR_RETURN(const MemoryMap map, MemoryMap::Make(program));
  Connections connections;
  RETURN_IF_ERROR(ForEachStep(program,
                              [&](const MscclPlace& place, const MscclThreadblock& threadblock,
                                  const MscclStep& step) -> absl::Status {
                                RETURN_IF_ERROR(CheckPeers(program, place, threadblock, step));
                                RETURN_IF_ERROR(CheckDependency(program, place, step));
                                return connections.Add(place, threadblock, step);
                              }));
  std::int32_t workspace = 0;
  for (const MscclGpu& gpu : program.gpus) {
    workspace = std::max(workspace, WorkspaceOf(gpu));
  }
  Schedule schedule;
  schedule.name = program.name;
  schedule.collective = map.collective();
  schedule.group_size = static_cast<int>(program.gpus.size());
  schedule.input_chunks = map.input_chunks();
  schedule.output_chunks = map.output_chunks();
  schedule.scratch_chunks = map.scratch_chunks() + workspace;
  ASSIGN_OR_RETURN(Lists made, ListsOf(program, {program, map, connections, schedule.chunks()}));
  const auto lists = std::make_shared<const Lists>(std::move(made));
  schedule.ops_of = [lists](Rank rank) { return lists->ops[static_cast<std::size_t>(rank)]; };
  schedule.origin_of = [lists](Rank rank, OpIndex op) {
    return NameOf(lists->origins[static_cast<std::size_t>(rank)][static_cast<std::size_t>(op)]);
  };
  return schedule;
}

}  // namespace ranklab::collectives
