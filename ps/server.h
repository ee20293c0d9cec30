// A shard behind a Responder: decodes requests, calls the shard, answers. No state of its own but
// the counters of what it saw.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/event_loop.h"
#include "core/units.h"
#include "ps/shard.h"
#include "transport/requests.h"

namespace ranklab::ps {

struct ServerReport {
  Bytes bytes_pushed = 0;  // of pushes that were counted
  Bytes bytes_pulled = 0;
  Bytes bytes_replicated = 0;  // of another server's updates, taken into its replica here
  std::int64_t pushes = 0;
  std::int64_t pulls = 0;         // answered
  std::int64_t parked_pulls = 0;  // that had to wait for the gate
  std::int64_t duplicates = 0;    // retries of what was counted, or late: answered, not counted
  std::int64_t refused = 0;       // requests that were answered with an error
  std::int64_t updates = 0;       // optimizer steps applied
  std::int64_t skipped = 0;       // steps without an update: overflow, or no weight
  Nanos busy{};                   // time in shard calls, on the loop's clock
  std::vector<std::int64_t> late_steps{};  // [worker]: dropped, see ShardCounters
  // [worker][staleness]: reads by observed staleness = reader's step - 1 - clock, at least 0.
  std::vector<std::map<std::int64_t, std::int64_t>> staleness;
};

class Server {
 public:
  // Serves `shard` until destroyed. All three must outlive it. A push is answered once it is
  // counted, a pull once the gate lets it. Requests that make no sense, whatever they hold, are
  // answered with InvalidArgument and change nothing.
  // Memory: a copy of what was read of the newest version, and of older ones until it is sent.
  Server(EventLoop& loop, transport::Responder& responder, Shard& shard, int worker_count);
  ~Server();

  // Also takes the updates of server `of`, whose shard `standby` is a replica of. It outlives the
  // server. Requires: both shards hold elements, and not the same.
  void HoldReplica(Shard& standby, Rank of);

  // The server whose replica is here was lost: its shard is served here from now on. A worker's
  // request for it says the same: workers are told by the coordinator, as this server is.
  // Errors: FailedPrecondition, no replica is here; ResourceExhausted.
  absl::Status TakeOver();

  // The worker was lost: see Shard::Remove.
  void Remove(Rank worker);

  // `begun` runs when a worker first asks for something of a later step than any before.
  void OnStep(absl::AnyInvocable<void(Step)> begun);

  ServerReport Report() const;

 private:
  class Core;
  std::shared_ptr<Core> core_;  // pulls that are still parked know that it has gone
};

}  // namespace ranklab::ps
