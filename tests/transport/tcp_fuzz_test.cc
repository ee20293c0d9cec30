// A member that knows the secret and the format, and sends nonsense: only its own connection may
// suffer.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/random.h"
#include "tests/transport/raw_socket.h"
#include "tests/transport/tcp_node.h"
#include "transport/tcp/frame.h"
#include "transport/tcp/greeting.h"

namespace ranklab::transport {
namespace {

constexpr std::uint64_t kSecret = 42;

// A header with a right checksum and wild fields, and a body that may not be as long as it says.
void AppendWildFrame(Random& random, Storage& bytes) {
  MessageHeader header;
  header.kind = static_cast<MessageKind>(random.Below(6));
  header.envelope = {.generation = static_cast<std::uint32_t>(random.Below(2)),
                     .group = 0,
                     .sequence = random.Below(2),
                     .lane = static_cast<std::uint32_t>(random.Below(2)),
                     .part = 0};
  header.request.id = random.Below(3);
  header.request.begin = static_cast<std::int64_t>(random.Next());
  header.status = random.Below(3) == 0 ? static_cast<std::int32_t>(random.Next()) : 0;
  header.error = random.Below(4) == 0 ? "an error" : "";
  constexpr Bytes kSizes[] = {0, 8, 8, 8, 100, 70'000, Bytes{1} << 39};
  header.size = kSizes[random.Below(std::size(kSizes))];
  const HeaderBytes encoded = EncodeHeader(header, random.Below(8) == 0);
  bytes.insert(bytes.end(), encoded.begin(), encoded.end());
  for (const char c : header.error) {
    bytes.push_back(static_cast<std::byte>(c));
  }
  bytes.resize(bytes.size() + static_cast<std::size_t>(header.size < 1 << 20 ? header.size : 0));
}

Storage WildTraffic(Random& random) {
  Storage bytes;
  for (std::uint64_t frames = 1 + random.Below(30); frames > 0; --frames) {
    AppendWildFrame(random, bytes);
  }
  if (random.Below(2) == 0) {
    for (int i = 0; i < 3; ++i) {
      bytes[random.Below(bytes.size())] ^= static_cast<std::byte>(1 + random.Below(255));
    }
  }
  bytes.resize(bytes.size() - random.Below(bytes.size()));  // it stops anywhere
  return bytes;
}

// One round: an honest member, a liar, and everything that a liar could meet posted.
void PlayRound(std::uint64_t seed) {
  Random random(seed);
  TcpNode honest(Worker(0)), node(Worker(2));
  Ending ready, honest_ready, lost, from_liar, call;
  Storage landing(8), answer(8);
  node.Open({honest.AsPeer(), {Worker(1), "127.0.0.1:1"}}, ready);
  honest.Open({node.AsPeer()}, honest_ready);
  RawSocket liar(node.port().port());
  liar.Write(EncodeHello({.generation = 1, .secret = kSecret, .from = Worker(1), .to = Worker(2)}));
  ASSERT_EQ(ready.Wait(), absl::OkStatus());
  ASSERT_EQ(honest_ready.Wait(), absl::OkStatus());
  node.loop().RunAndWait([&] {
    Messenger& messenger = node.messenger();
    messenger.OnLost(
        [done = lost.Done()](Endpoint, const absl::Status& why) mutable { done(why); });
    messenger.Serve([](Endpoint, const RequestHeader&, Payload, AnswerFn reply) {
      reply(ReplyHeader{}, {}, [](const absl::Status&) {});
    });
    messenger.Recv(Worker(1), {.generation = 1}, LandingOf(landing), from_liar.Done());
    messenger.Call(Worker(1), {.id = 1}, {}, LandingOf(answer),
                   [done = call.Done()](const absl::StatusOr<ReplyHeader>& reply) mutable {
                     done(reply.status());
                   });
  });
  liar.Write(WildTraffic(random));
  liar.ShutDown();
  EXPECT_FALSE(lost.Wait().ok());
  from_liar.Wait().IgnoreError();
  call.Wait().IgnoreError();

  const Storage body = BytesOf("unharmed");
  Storage received(body.size());
  Ending send, recv;
  node.Recv(Worker(0), {.generation = 1}, LandingOf(received), recv);
  honest.Send(Worker(2), {.generation = 1}, PayloadOf(body), send);
  EXPECT_EQ(send.Wait(), absl::OkStatus());
  EXPECT_EQ(recv.Wait(), absl::OkStatus());
  EXPECT_EQ(received, body);
  node.Close();
  honest.Close();
}

TEST(TcpFuzz, AMemberThatSendsNonsenseHarmsNobodyElse) {
  const char* chosen = std::getenv("RANKLAB_SEED");
  const std::uint64_t first = chosen == nullptr ? 1 : std::strtoull(chosen, nullptr, 10);
  const std::uint64_t last = chosen == nullptr ? 60 : first;
  for (std::uint64_t seed = first; seed <= last && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("replay: RANKLAB_SEED=" + std::to_string(seed) +
                 " tcp_test --gtest_filter=TcpFuzz.*");
    PlayRound(seed);
  }
}

}  // namespace
}  // namespace ranklab::transport
