// A worker's side of the parameter servers: cuts what it is given by server and into messages of
// about 1 MiB, starts at a different server on each worker (so that the servers' ports are shared
// evenly), and says when all of it is done.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <absl/functional/any_invocable.h>
#include <absl/status/statusor.h>

#include "compute/tensor.h"
#include "core/event_loop.h"
#include "core/units.h"
#include "ps/placement.h"
#include "ps/protocol.h"
#include "ps/round.h"
#include "transport/requests.h"

namespace ranklab::ps {

struct ClientOptions {
  Rank worker = 0;
  std::uint32_t generation = 0;
  std::vector<KeyRange> ranges;  // [server], as CutEvenly gives
  Bytes message = 1 << 20;       // largest body; at least one element

  compute::DType wire = compute::DType::kFloat32;  // of pushed gradients
  bool survives = false;  // a lost server's calls wait for its heir (Replace)
};

struct Pulled {
  Step clock = 0;            // the smallest over servers
  std::int64_t version = 0;  // likewise
  bool skipped = false;      // this worker's last step was skipped for overflow, on some server
};

// One server's part of a push or pull, once all of it is answered.
struct Share {
  Rank server = 0;
  Bytes bytes = 0;  // of gradients or parameters
};
using ShareFn = absl::AnyInvocable<void(Share)>;

// All calls and callbacks on the loop. Parameters are float32. A request id is this client's own:
// one client a Requester. Callbacks run exactly once, also after the client is gone, and never
// while the transport still reads or writes the caller's memory; with an error the first one,
// named: "push of step 12 to server 1: ...". Calls have no deadline: who owns one aborts the
// transport and asks WaitingFor() whom to name.
class Client {
 public:
  Client(transport::Requester& requester, const ClientOptions& options);
  ~Client();

  // Pushes the gradients of elements `part` (`gradients` points at element part.begin, of the
  // wire's dtype), in messages that go out at once. They must stay valid until `done` runs. An
  // empty part is done at once, inline. `answered` runs for each server with its last answer,
  // before `done`, unless it is an error.
  // Requires: `part` lies within the model; a step after the first is pushed once the model was
  // pulled for it, because a server takes one step of a worker at a time.
  // Errors: Unavailable, a server is gone, by name; Aborted; DeadlineExceeded; the shard's own.
  void Push(Step step, KeyRange part, const void* gradients, DoneFn done,
            ShareFn answered = nullptr);

  // Ends the step on every server, also on those that hold nothing; the worker's clock moves there.
  // May follow the pushes at once (messages to one server arrive in order), and the pull for the
  // next step may follow at once too: neither need wait for an answer. A part that overtook nothing
  // but comes late makes it FailedPrecondition with nothing changed there: EndStep may be called
  // again.
  void EndStep(Step step, StepEnd end, DoneFn done);

  // Reads the elements of `part` into `into` (which points at element part.begin), once the
  // staleness bound lets this worker begin `step`, and runs `done` when all are there. All requests
  // go out at once. Servers that hold no element at all are asked as well, so that the bound holds
  // there too; if nobody has to be asked, `done` runs inline. A pull for a step that this worker
  // has ended reads the newest parameters: so are the final ones read, behind a barrier. On an
  // error, `into` holds anything. `answered` as for Push. Requires: `part` lies within the model.
  // Errors: as Push.
  void Pull(Step step, KeyRange part, float* into,
            absl::AnyInvocable<void(absl::StatusOr<Pulled>)> done, ShareFn answered = nullptr);

  // This worker will push no more: nobody need wait for its clock. It may still pull.
  // Errors: as Push; FailedPrecondition, it is in the middle of a step.
  void Leave(DoneFn done);

  // Server `lost` is gone, and `heir` has the replica of its shard: what this worker has said of
  // its current step there is said again, in the order of pushes, end and pulls, each group once
  // the one before is answered, and calls that were open end with the heir's answers. Nothing
  // counts twice: the heir answers what its replica has as a retry. Begins once the transport has
  // ended the calls to the lost one. Requires: options.survives; gradients stay as they were pushed
  // until the pull of the next step is done.
  void Replace(Rank lost, Rank heir);

  // Whose answers are missing, and which: "server 0 (pull of step 12), server 1 (pull of step 12)";
  // "nobody".
  std::string WaitingFor() const;

 private:
  class Core;
  std::shared_ptr<Core> core_;  // lives on until the last answer
};

}  // namespace ranklab::ps
