// An exchange for a training thread: posts to the machine's loop, waits for what it answers.
#pragma once

#include <memory>

#include "core/event_loop.h"
#include "worker/exchange_machine.h"
#include "worker/gradient_exchange.h"
#include "worker/wire_gradients.h"

namespace ranklab::worker {

// Rounds what is sent to the wire's dtype and back, on the calling thread.
// `overlap`: buckets are begun when they are ready, else all of them in FinishStep. The transport
// must have been aborted before this is destroyed: the destructor waits for what is under way.
std::unique_ptr<GradientExchange> MakeBlocking(EventLoop& loop, bool overlap,
                                               std::unique_ptr<ExchangeMachine> machine,
                                               WireGradients wire);

}  // namespace ranklab::worker
