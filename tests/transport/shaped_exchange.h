// The transfers of the two exchanges, without arithmetic: what a ring and a synchronous parameter
// server put on their ports, replayed event by event over shaped wires.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "fabric/held_to_account.h"
#include "tests/transport/shaped_cluster.h"

namespace ranklab::transport {

inline Endpoint WorkerOf(int rank) { return {Role::kWorker, rank}; }
inline Endpoint ServerOf(int rank) { return {Role::kServer, rank}; }

// Every rank sends its next chunk to its right neighbour when one came from the left, 2 (P-1)
// times: a ring all-reduce whose reduction takes no time. Begins now; the caller runs the loop.
struct RingReplay {
  ShapedCluster& cluster;
  int ranks = 0;
  Bytes size = 0;         // of the buffer; a multiple of ranks
  int dropped_rank = -1;  // this rank leaves out its last transfer
  bool shaped = true;
  std::vector<int> steps_sent;

  void Begin() {
    steps_sent.assign(ranks, 0);
    for (int rank = 0; rank < ranks; ++rank) {
      At(rank).on_arrival = [this, rank](Endpoint, const MessageHeader&) { SendNext(rank); };
    }
    for (int rank = 0; rank < ranks; ++rank) {
      SendNext(rank);
    }
  }

  int steps() const { return 2 * (ranks - 1); }
  Bytes BytesPerRank() const { return steps() * (size / ranks); }
  Listener& At(int rank) {
    return shaped ? cluster.At(WorkerOf(rank)) : cluster.Plain(WorkerOf(rank));
  }

 private:
  void SendNext(int rank) {
    int& sent = steps_sent[rank];
    if (sent == steps()) {
      return;
    }
    ++sent;
    if (rank == dropped_rank && sent == steps()) {
      return;
    }
    At(rank).Send(WorkerOf((rank + 1) % ranks), size / ranks);
  }
};

// Every worker sends one part to each server, beginning at another one.
inline void BeginPush(ShapedCluster& cluster, int workers, int servers, Bytes size) {
  for (int server = 0; server < servers; ++server) {
    cluster.At(ServerOf(server));
  }
  for (int worker = 0; worker < workers; ++worker) {
    for (int i = 0; i < servers; ++i) {
      cluster.At(WorkerOf(worker)).Send(ServerOf((worker + i) % servers), size / servers);
    }
  }
}

// Every server answers each worker with its part, beginning at another one.
inline void BeginPull(ShapedCluster& cluster, int workers, int servers, Bytes size) {
  for (int worker = 0; worker < workers; ++worker) {
    cluster.At(WorkerOf(worker));
  }
  for (int server = 0; server < servers; ++server) {
    for (int i = 0; i < workers; ++i) {
      cluster.At(ServerOf(server)).Send(WorkerOf((server + i) % workers), size / servers);
    }
  }
}

// What a live run knows about one endpoint whose left neighbour is `from`.
inline fabric::NetworkFigures FiguresOf(Listener& listener, Endpoint from) {
  fabric::NetworkFigures figures;
  figures.body_received = listener.wire().counters(from).body_received;
  if (auto* shaped = dynamic_cast<ShapedWire*>(&listener.wire())) {
    const ShapeReport report = shaped->Report();
    figures.bandwidth_median = report.achieved_bandwidth_median;
    figures.bandwidth_samples = report.bandwidth_samples;
    figures.latency_median = report.latency_median;
    figures.latency_samples = report.latency_samples;
  }
  return figures;
}

}  // namespace ranklab::transport
