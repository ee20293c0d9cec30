// What two processes say on a new connection before any message. Pure.
//
//   dialer    Hello
//   acceptor  Answer: welcome, or why not
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <absl/status/statusor.h>

#include "core/endpoint.h"
#include "transport/shm/shared_segment.h"

namespace ranklab::transport {

inline constexpr std::size_t kHelloBytes = 52;
inline constexpr std::size_t kAnswerBytes = 16;

using HelloBytes = std::array<std::byte, kHelloBytes>;
using AnswerBytes = std::array<std::byte, kAnswerBytes>;

struct Hello {
  std::uint32_t generation = 0;
  std::uint64_t secret = 0;
  Endpoint from;
  Endpoint to;
  SegmentId segment{};  // memory that the dialer offers to share; none where process is 0
};

enum class Answer : std::uint32_t {
  kWelcome,
  kNotOpenYet,       // the acceptor has not opened this generation: dial again
  kOtherGeneration,  // it is past this generation
  kWrongSecret,
  kNotExpected,  // the dialer or whom it looks for is no member, or not the one to dial
  kAlreadyConnected,
  kWelcomeToShare,  // welcome, and the segment is open: bytes go through it
};

inline bool IsWelcome(Answer answer) {
  return answer == Answer::kWelcome || answer == Answer::kWelcomeToShare;
}

// "the secret is wrong": for logs and errors.
std::string ReasonOf(Answer answer);

HelloBytes EncodeHello(const Hello& hello);
AnswerBytes EncodeAnswer(Answer answer);

// Errors: InvalidArgument, not ours, of another version or damaged.
absl::StatusOr<Hello> DecodeHello(std::span<const std::byte, kHelloBytes> bytes);
absl::StatusOr<Answer> DecodeAnswer(std::span<const std::byte, kAnswerBytes> bytes);

}  // namespace ranklab::transport
