// A connection's bytes through memory that both processes share. The socket stays: a byte on it
// wakes a side that sleeps, its end says that the peer is gone. On the loop.
#pragma once

#include <cstddef>
#include <memory>
#include <tuple>
#include <vector>

#include <boost/asio/buffer.hpp>

#include "core/event_loop.h"
#include "transport/shm/shared_segment.h"
#include "transport/tcp/asio.h"

namespace ranklab::transport {

class RingStream {
 public:
  using Result = std::tuple<error_code, std::size_t>;  // as Asio's reads and writes

  // A side with nothing to do looks for `spin` whether that changes before it sleeps. `socket` must
  // outlive the stream.
  RingStream(asio::io_context& io, tcp::socket& socket, std::unique_ptr<SharedSegment> segment,
             Nanos spin);

  // One of each at a time. Write: all of them, or an error. ReadSome: at least a byte, or an error;
  // what had been written before the peer went is read first.
  asio::awaitable<Result> Write(const std::vector<asio::const_buffer>& pieces);
  asio::awaitable<Result> ReadSome(asio::mutable_buffer to);

  // Hears the peer's wake-ups until the socket ends, then ends whoever waits for the peer. Runs as
  // a coroutine of its own.
  asio::awaitable<void> HearWakeUps();

  // Whoever waits ends with an error and touches neither bytes to write nor where to read to.
  void Close();

 private:
  // Until the peer wakes this side or is gone, or Close. `end`: a RingReader or RingWriter that
  // cannot go on.
  template <typename RingEnd>
  asio::awaitable<void> Wait(RingEnd& end, asio::steady_timer& sleep);
  void WakeBoth();
  void WakePeer();

  asio::io_context& io_;
  tcp::socket& socket_;
  const std::unique_ptr<SharedSegment> segment_;
  const Nanos spin_;
  asio::steady_timer write_sleep_;  // cancelled to wake
  asio::steady_timer read_sleep_;
  bool closed_ = false;
  error_code gone_;  // how the socket ended
};

}  // namespace ranklab::transport
