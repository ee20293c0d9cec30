// A shard behind a Responder: decodes requests, calls the shard, answers. No state of its own but
// the counters of what it saw.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "core/event_loop.h"
#include "ps/shard.h"
#include "transport/requests.h"

namespace ranklab::ps {

struct ServerReport {
  Bytes bytes_pushed = 0;
  Bytes bytes_pulled = 0;
  std::int64_t pushes = 0;
  std::int64_t pulls = 0;
  std::int64_t parked_pulls = 0;  // that had to wait for the gate
  std::int64_t updates = 0;       // optimizer steps applied
  Nanos busy{};                   // time in shard calls, on the loop's clock
  // [worker][staleness]: reads by observed staleness = reader's step - 1 - clock, at least 0.
  std::vector<std::map<std::int64_t, std::int64_t>> staleness;
};

class Server {
 public:
  // Serves `shard` until destroyed. All three must outlive it.
  Server(EventLoop& loop, transport::Responder& responder, Shard& shard, int worker_count);
  ~Server();

  ServerReport Report() const;

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace ranklab::ps
