// A worker's side of the parameter servers: cuts what it is given by server and into messages of
// about 1 MiB, starts at a different server on each worker (so that the servers' ports are shared
// evenly), and says when all of it is done.
#pragma once

#include <memory>
#include <vector>

#include <absl/status/statusor.h>

#include "core/event_loop.h"
#include "ps/shard.h"
#include "transport/requests.h"

namespace ranklab::ps {

// Methods of the parameter server's wire (RequestHeader::method).
enum class Method : std::uint32_t { kPush = 1, kPull = 2 };

struct ClientOptions {
  Rank worker = 0;
  std::uint32_t generation = 0;
  std::vector<KeyRange> ranges;  // [server], as CutEvenly gives
  Bytes message = 1 << 20;       // largest body
};

struct Pulled {
  Step clock = 0;            // the smallest over servers
  std::int64_t version = 0;  // likewise
  bool skipped = false;
};

// All calls and callbacks on the loop. Float32 only.
class Client {
 public:
  Client(transport::Requester& requester, const ClientOptions& options);
  ~Client();

  // Pushes the gradients of elements `part` (`gradients` points at element part.begin). The last
  // push of a step carries `end` to every server (also to those that got no bytes of it); the
  // worker's clock moves there. `gradients` must stay valid until `done` runs.
  // Errors: Unavailable, a server is gone, by name; Aborted; DeadlineExceeded; the shard's own.
  void Push(Step step, KeyRange part, const float* gradients, DoneFn done);
  void EndStep(Step step, StepEnd end, DoneFn done);

  // Reads the elements of `part` into `into`, once the staleness bound lets this worker begin
  // `step`. Runs `done` when all are there.
  void Pull(Step step, KeyRange part, float* into,
            absl::AnyInvocable<void(absl::StatusOr<Pulled>)> done);

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace ranklab::ps
