#include "transport/tcp/loopback_probe.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "core/status.h"

namespace ranklab::transport {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRoundTrips = 64;
constexpr std::size_t kPiece = 1 << 20;
constexpr int kPieces = 32;

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() {
    if (fd_ >= 0) {
      close(fd_);
    }
  }
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

absl::Status LastError(const char* what) {
  return Unavailable("loopback probe: %s: %s", what, std::strerror(errno));
}

absl::StatusOr<std::pair<Socket, Socket>> ConnectedPair() {
  Socket listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (listener.fd() < 0 || bind(listener.fd(), generic, size) != 0 ||
      listen(listener.fd(), 1) != 0 || getsockname(listener.fd(), generic, &size) != 0) {
    return LastError("listen");
  }
  Socket near(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (near.fd() < 0 || connect(near.fd(), generic, size) != 0) {
    return LastError("connect");
  }
  Socket far(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC));
  if (far.fd() < 0) {
    return LastError("accept");
  }
  const int on = 1;
  for (const int fd : {near.fd(), far.fd()}) {
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  return std::pair(std::move(near), std::move(far));
}

bool SendAll(int fd, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);
    if (sent <= 0) {
      return false;
    }
    data += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool ReceiveAll(int fd, char* data, std::size_t size) {
  return size == 0 || recv(fd, data, size, MSG_WAITALL) == static_cast<ssize_t>(size);
}

// The other end: echoes single bytes, then takes the stream and answers with one byte.
void Answer(int fd) {
  std::vector<char> piece(kPiece);
  for (int i = 0; i < kRoundTrips; ++i) {
    if (!ReceiveAll(fd, piece.data(), 1) || !SendAll(fd, piece.data(), 1)) {
      return;
    }
  }
  for (int i = 0; i < kPieces; ++i) {
    if (!ReceiveAll(fd, piece.data(), kPiece)) {
      return;
    }
  }
  SendAll(fd, piece.data(), 1);
}

}  // namespace

absl::StatusOr<LoopbackFigures> ProbeLoopback() {
  ASSIGN_OR_RETURN(auto pair, ConnectedPair());
  std::thread answering([fd = pair.second.fd()] { Answer(fd); });
  const int fd = pair.first.fd();
  std::vector<char> piece(kPiece);
  std::array<Nanos, kRoundTrips> round_trips{};
  bool good = true;
  for (Nanos& round_trip : round_trips) {
    const Clock::time_point begins = Clock::now();
    good = good && SendAll(fd, piece.data(), 1) && ReceiveAll(fd, piece.data(), 1);
    round_trip = Clock::now() - begins;
  }
  const Clock::time_point begins = Clock::now();
  for (int i = 0; i < kPieces; ++i) {
    good = good && SendAll(fd, piece.data(), kPiece);
  }
  good = good && ReceiveAll(fd, piece.data(), 1);
  const std::chrono::duration<double> took = Clock::now() - begins;
  shutdown(fd, SHUT_RDWR);
  answering.join();
  if (!good) {
    return LastError("transfer");
  }
  std::nth_element(round_trips.begin(), round_trips.begin() + kRoundTrips / 2, round_trips.end());
  return LoopbackFigures{.bytes_per_second = static_cast<double>(kPiece) * kPieces / took.count(),
                         .latency = round_trips[kRoundTrips / 2] / 2};
}

}  // namespace ranklab::transport
