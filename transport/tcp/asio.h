// What the .cc files of this folder share of Boost.Asio. Only they include it (directly or through
// connection.h, sockets.h and tcp_wire.h): it is most of their build time.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/error_code.hpp>

namespace ranklab::transport {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// co_await gives (error_code, results...) and throws nothing.
inline constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);

}  // namespace ranklab::transport
