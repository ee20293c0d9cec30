// An exchange for a training thread: posts to the machine's loop, waits for what it answers.
#pragma once

#include <memory>

#include "core/event_loop.h"
#include "worker/exchange_machine.h"
#include "worker/gradient_exchange.h"
#include "worker/host_copies.h"
#include "worker/wire_gradients.h"

namespace ranklab::worker {

// How a model's gradients come to what the machine sends, and back.
struct TravellingGradients {
  WireGradients wire;
  std::unique_ptr<const HostCopies> copies;
};

// Rounds what is sent to the wire's dtype and back, on the calling thread. From a model that is not
// in host memory buckets are copied while the backward pass goes on, and begun when they are there.
// `overlap`: buckets are begun when they are ready, else all of them in FinishStep. The transport
// must have been aborted before this is destroyed: the destructor waits for what is under way.
std::unique_ptr<GradientExchange> MakeBlocking(EventLoop& loop, bool overlap,
                                               std::unique_ptr<ExchangeMachine> machine,
                                               TravellingGradients gradients);

}  // namespace ranklab::worker
