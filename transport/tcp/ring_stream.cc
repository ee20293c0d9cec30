#include "transport/tcp/ring_stream.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <sys/socket.h>

namespace ranklab::transport {
namespace {

using Clock = std::chrono::steady_clock;

// Published at once: the peer copies one piece out while the next is copied in.
constexpr std::size_t kPiece = 64 << 10;

error_code Aborted() { return asio::error::make_error_code(asio::error::operation_aborted); }
error_code Broken() { return make_error_code(boost::system::errc::protocol_error); }

}  // namespace

RingStream::RingStream(asio::io_context& io, tcp::socket& socket,
                       std::unique_ptr<SharedSegment> segment, Nanos spin)
    : io_(io),
      socket_(socket),
      segment_(std::move(segment)),
      spin_(spin),
      write_sleep_(io, asio::steady_timer::time_point::max()),
      read_sleep_(io, asio::steady_timer::time_point::max()) {
  error_code ignored;  // a wake-up that does not fit is not needed: there are others before it
  socket_.non_blocking(true, ignored);
}

asio::awaitable<RingStream::Result> RingStream::Write(
    const std::vector<asio::const_buffer>& pieces) {
  RingWriter& ring = segment_->writer();
  std::size_t total = 0;
  for (const asio::const_buffer& piece : pieces) {
    const auto* from = static_cast<const std::byte*>(piece.data());
    for (std::size_t left = piece.size(); left > 0;) {
      if (closed_ || gone_) {
        co_return Result{closed_ ? Aborted() : gone_, total};
      }
      const std::size_t count = ring.Write(from, std::min(left, kPiece));
      from += count;
      left -= count;
      total += count;
      if (ring.Corrupt()) {
        co_return Result{Broken(), total};
      }
      if (count == 0) {
        co_await Wait(ring, write_sleep_);
      } else if (ring.TakeSleeper()) {
        WakePeer();
      }
    }
  }
  co_return Result{error_code(), total};
}

asio::awaitable<RingStream::Result> RingStream::ReadSome(asio::mutable_buffer to) {
  RingReader& ring = segment_->reader();
  while (!closed_) {
    const error_code gone = gone_;  // before the last look: nothing is written after it
    const std::size_t count =
        ring.Read(static_cast<std::byte*>(to.data()), std::min(to.size(), kPiece));
    if (ring.Corrupt()) {
      co_return Result{Broken(), 0};
    }
    if (count > 0) {
      if (ring.TakeSleeper()) {
        WakePeer();
      }
      co_return Result{error_code(), count};
    }
    if (gone) {
      co_return Result{gone, 0};
    }
    co_await Wait(ring, read_sleep_);
  }
  co_return Result{Aborted(), 0};
}

template <typename RingEnd>
asio::awaitable<void> RingStream::Wait(RingEnd& end, asio::steady_timer& sleep) {
  for (const auto until = Clock::now() + spin_; Clock::now() < until && !closed_ && !gone_;) {
    if (end.Ready()) {
      co_return;
    }
    std::this_thread::yield();                      // to a peer that shares the core
    co_await asio::post(io_, asio::use_awaitable);  // and to what else the loop has to do
  }
  if (!closed_ && !gone_ && end.FallAsleep()) {
    co_await sleep.async_wait(kAwait);
    end.Awake();
  }
}

asio::awaitable<void> RingStream::HearWakeUps() {
  std::array<std::byte, 64> ignored;
  while (!closed_ && !gone_) {
    const auto [error, count] = co_await socket_.async_read_some(asio::buffer(ignored), kAwait);
    gone_ = error;
    WakeBoth();
  }
}

void RingStream::Close() {
  closed_ = true;
  WakeBoth();
}

void RingStream::WakeBoth() {
  write_sleep_.cancel();
  read_sleep_.cancel();
}

// What is wrong with the socket shows in HearWakeUps.
void RingStream::WakePeer() {
  constexpr char kByte = 0;
  ::send(socket_.native_handle(), &kByte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace ranklab::transport
