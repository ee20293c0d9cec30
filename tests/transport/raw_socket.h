// A plain blocking socket: the stranger of the tests.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ranklab::transport {

class RawSocket {
 public:
  explicit RawSocket(int port) : descriptor_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval patience{30, 0};
    ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    connected_ =
        ::connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~RawSocket() { ::close(descriptor_); }
  RawSocket(const RawSocket&) = delete;
  RawSocket& operator=(const RawSocket&) = delete;

  bool connected() const { return connected_; }
  bool Write(std::span<const std::byte> bytes) {
    return ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }

  // What comes until the other side closes, at most `most` bytes.
  std::vector<std::byte> Read(std::size_t most) {
    std::vector<std::byte> bytes(most);
    std::size_t size = 0;
    while (size < most) {
      const ssize_t count = ::recv(descriptor_, bytes.data() + size, most - size, 0);
      if (count <= 0) {
        break;
      }
      size += static_cast<std::size_t>(count);
    }
    bytes.resize(size);
    return bytes;
  }

  void ShutDown() { ::shutdown(descriptor_, SHUT_WR); }

  // Waits until the other side closes or resets.
  bool IsClosedByPeer() {
    std::byte byte;
    ssize_t count = 0;
    while ((count = ::recv(descriptor_, &byte, 1, 0)) > 0) {
    }
    return count == 0 || errno == ECONNRESET;
  }

 private:
  int descriptor_;
  bool connected_ = false;
};

}  // namespace ranklab::transport
