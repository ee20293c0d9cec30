#pragma once

#include <cstdint>

namespace ranklab::ps {

// Methods of the parameter server's wire (RequestHeader::method). Elements are float32 of the
// flattened model, RequestHeader's [begin, end).
//   push: the body holds the elements' gradients; with ends_step, weight and overflow it ends the
//         worker's step on this server, after the body is counted
//   pull: no body; the answer holds the elements' parameters, with clock, version, skipped
//   leave: no body; this worker will push no more, so that nobody need wait for it
enum class Method : std::uint32_t { kPush = 1, kPull = 2, kLeave = 3 };

}  // namespace ranklab::ps
