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
  std::int64_t pushes = 0;
  std::int64_t pulls = 0;         // answered
  std::int64_t parked_pulls = 0;  // that had to wait for the gate
  std::int64_t duplicates = 0;    // retries of what was counted: answered, not counted again
  std::int64_t refused = 0;       // requests that were answered with an error
  std::int64_t updates = 0;       // optimizer steps applied
  std::int64_t skipped = 0;       // steps without an update: overflow, or no weight
  Nanos busy{};                   // time in shard calls, on the loop's clock
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

  ServerReport Report() const;

 private:
  class Core;
  std::shared_ptr<Core> core_;  // pulls that are still parked know that it has gone
};

}  // namespace ranklab::ps
