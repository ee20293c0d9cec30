// The live EventLoop: the steady clock, one thread, Boost.Asio inside.
#pragma once

#include <memory>

#include "core/event_loop.h"

namespace ranklab::transport {

class LiveLoop final : public EventLoop {
 public:
  LiveLoop();  // starts the loop's thread; the epoch is the steady clock's own, equal for all
               // processes of one machine
  ~LiveLoop() override;  // Stop()

  Nanos Now() const override;
  void Post(Task task) override;
  TimerId RunAt(Nanos when, Task task) override;  // on the loop, or from any thread
  void Cancel(TimerId timer) override;

  // Runs `task` on the loop and waits for it. Not from the loop itself.
  void RunAndWait(Task task);

  // Drops what is queued, ends the thread, waits for it. Not from the loop itself.
  void Stop();

  bool OnLoop() const;

  // How late the loop ran its last heartbeat timer: a measure of how busy it is.
  Nanos lag() const;

  class Core;
  Core& core() { return *core_; }  // for transport/tcp only

 private:
  std::unique_ptr<Core> core_;
};

}  // namespace ranklab::transport
