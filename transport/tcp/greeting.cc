#include "transport/tcp/greeting.h"

#include "core/check.h"
#include "core/status.h"
#include "transport/tcp/byte_order.h"
#include "transport/tcp/frame.h"

namespace ranklab::transport {
namespace {

constexpr std::uint32_t kHelloMagic = 0x31484c52;   // "RLH1"
constexpr std::uint32_t kAnswerMagic = 0x31414c52;  // "RLA1"
constexpr std::uint32_t kVersion = 2;

void PutEndpoint(FieldWriter& out, Endpoint endpoint) {
  out.Put(static_cast<std::uint32_t>(endpoint.role));
  out.Put(endpoint.rank);
}

absl::StatusOr<Endpoint> TakeEndpoint(FieldReader& in) {
  const auto role = in.Take<std::uint32_t>();
  const auto rank = in.Take<Rank>();
  if (role > static_cast<std::uint32_t>(Role::kServer) || rank < 0) {
    return InvalidArgument("no endpoint: role %d, rank %d", role, rank);
  }
  return Endpoint{static_cast<Role>(role), rank};
}

absl::Status CheckChecksum(FieldReader& in) {
  const std::uint64_t expected = ChecksumOf(in.taken());
  if (in.Take<std::uint64_t>() != expected) {
    return InvalidArgument("a greeting with a wrong checksum");
  }
  return absl::OkStatus();
}

}  // namespace

std::string ReasonOf(Answer answer) {
  switch (answer) {
    case Answer::kWelcome:
    case Answer::kWelcomeToShare:
      return "welcome";
    case Answer::kNotOpenYet:
      return "its generation is not open yet";
    case Answer::kOtherGeneration:
      return "its generation is over";
    case Answer::kWrongSecret:
      return "its secret is wrong";
    case Answer::kNotExpected:
      return "it is not expected";
    case Answer::kAlreadyConnected:
      return "it is connected already";
  }
  return "of an unknown reason";
}

HelloBytes EncodeHello(const Hello& hello) {
  HelloBytes bytes{};
  FieldWriter out(bytes);
  out.Put(kHelloMagic);
  out.Put(kVersion);
  out.Put(hello.generation);
  out.Put(hello.segment.process);
  out.Put(hello.segment.descriptor);
  out.Put(hello.secret);
  PutEndpoint(out, hello.from);
  PutEndpoint(out, hello.to);
  out.Put(ChecksumOf(out.written()));
  RANKLAB_CHECK(out.written().size() == kHelloBytes);
  return bytes;
}

AnswerBytes EncodeAnswer(Answer answer) {
  AnswerBytes bytes{};
  FieldWriter out(bytes);
  out.Put(kAnswerMagic);
  out.Put(static_cast<std::uint32_t>(answer));
  out.Put(ChecksumOf(out.written()));
  RANKLAB_CHECK(out.written().size() == kAnswerBytes);
  return bytes;
}

absl::StatusOr<Hello> DecodeHello(std::span<const std::byte, kHelloBytes> bytes) {
  FieldReader in(bytes);
  if (in.Take<std::uint32_t>() != kHelloMagic) {
    return InvalidArgument("no greeting of ours");
  }
  if (const auto version = in.Take<std::uint32_t>(); version != kVersion) {
    return InvalidArgument("protocol version %d, this program speaks %d", version, kVersion);
  }
  Hello hello;
  hello.generation = in.Take<std::uint32_t>();
  hello.segment.process = in.Take<std::uint32_t>();
  hello.segment.descriptor = in.Take<std::uint32_t>();
  hello.secret = in.Take<std::uint64_t>();
  ASSIGN_OR_RETURN(hello.from, TakeEndpoint(in));
  ASSIGN_OR_RETURN(hello.to, TakeEndpoint(in));
  RETURN_IF_ERROR(CheckChecksum(in));
  return hello;
}

absl::StatusOr<Answer> DecodeAnswer(std::span<const std::byte, kAnswerBytes> bytes) {
  FieldReader in(bytes);
  if (in.Take<std::uint32_t>() != kAnswerMagic) {
    return InvalidArgument("no answer of ours");
  }
  const auto answer = in.Take<std::uint32_t>();
  RETURN_IF_ERROR(CheckChecksum(in));
  if (answer > static_cast<std::uint32_t>(Answer::kWelcomeToShare)) {
    return InvalidArgument("unknown answer %d", answer);
  }
  return static_cast<Answer>(answer);
}

}  // namespace ranklab::transport
