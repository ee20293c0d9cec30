#pragma once

#include <cstdint>
#include <vector>

#include <absl/status/statusor.h>

#include "ps/shard.h"
#include "transport/requests.h"

namespace ranklab::ps {

// Methods of the parameter server's wire (RequestHeader::method). Elements are of the flattened
// model, RequestHeader's [begin, end); a request of none is about the shard that `begin` lies in.
//   push: the body holds the elements' gradients; with ends_step, weight and overflow it ends the
//         worker's step on this server, after the body is counted
//   pull: no body; the answer holds the elements' parameters, with clock, version, skipped
//   leave: no body; this worker will push no more, so that nobody need wait for it
//   replicate: of a server, to the one that has its replica; `step` is the update's sequence. The
//         body holds a part of its gradients, float32; with ends_step, weight and overflow it is
//         the update itself (EncodeUpdate)
enum class Method : std::uint32_t { kPush = 1, kPull = 2, kLeave = 3, kReplicate = 4 };

// What the header has no place for, as little-endian words: the step, then who has ended it.
std::vector<std::int64_t> EncodeUpdate(const ReplicatedUpdate& update);

// Errors: InvalidArgument, a body that is no update's, or that names more workers than there are.
absl::StatusOr<ReplicatedUpdate> DecodeUpdate(const transport::RequestHeader& header,
                                              transport::Payload body, int worker_count);

}  // namespace ranklab::ps
