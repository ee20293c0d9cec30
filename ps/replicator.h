// The sending side of a replica: hands a shard's updates to the next server, one after another.
#pragma once

#include <cstdint>
#include <memory>

#include "compute/tensor.h"
#include "core/endpoint.h"
#include "core/event_loop.h"
#include "ps/key_range.h"
#include "ps/shard.h"
#include "transport/requests.h"

namespace ranklab::ps {

struct ReplicatorOptions {
  std::uint32_t generation = 0;
  Endpoint heir;            // has the replica
  KeyRange range;           // of the shard
  Bytes message = 1 << 20;  // largest body; at least one element
};

// On the loop. Cost, each update: the range once over the wire, in float32 whatever the workers'
// wire has, and one answer awaited.
class Replicator {
 public:
  // `requester` outlives it; its request ids are this one's own.
  Replicator(transport::Requester& requester, const ReplicatorOptions& options);
  ~Replicator();  // drops what is not done

  // `done` runs once the replica has applied the update. Updates go in the order given. While the
  // heir is gone and nobody has said so (Stop), it waits.
  // Errors (through `done`): Aborted, the heir was promoted, so that this server is no longer the
  // shard's; the replica's own.
  void Replicate(const ReplicatedUpdate& update, const compute::TensorView& gradients, DoneFn done);

  // The heir was lost: what is open, and all later updates, are done without it.
  void Stop();

  Bytes bytes_sent() const;

 private:
  class Core;
  std::shared_ptr<Core> core_;  // calls that are open know when it has gone
};

}  // namespace ranklab::ps
