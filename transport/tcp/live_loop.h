// The live EventLoop: the steady clock, one thread, Boost.Asio inside.
#pragma once

#include <memory>

#include "core/event_loop.h"

namespace boost::asio {
class io_context;
}

namespace ranklab::transport {

class LiveLoop final : public EventLoop {
 public:
  // Starts the loop's thread; the epoch is the steady clock's own, equal for all processes of one
  // machine. When there is nothing to do, the thread looks for work for `spin` before it sleeps:
  // what comes meanwhile is handled without waking it, for the price of a core.
  explicit LiveLoop(Nanos spin = Nanos::zero());
  ~LiveLoop() override;  // Stop()

  Nanos Now() const override;
  void Post(Task task) override;
  TimerId RunAt(Nanos when, Task task) override;  // on the loop, or from any thread
  void Cancel(TimerId timer) override;

  // Runs `task` on the loop and waits for it. Not from the loop itself, nor once it is stopped.
  void RunAndWait(Task task);

  // Ends the thread after the task it runs and waits for it; what is queued never runs, and is
  // destroyed with the loop. Not from the loop itself.
  void Stop();

  bool OnLoop() const;
  bool stopped() const;
  Nanos spin() const;

  // How late the loop ran its last heartbeat timer: a measure of how busy it is.
  Nanos lag() const;

  boost::asio::io_context& io_context();  // for transport/tcp only

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace ranklab::transport
