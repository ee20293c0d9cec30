// Who is let in: greetings, strangers, liars, deadlines.
#include "transport/tcp/tcp_port.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/log.h"
#include "core/random.h"
#include "core/status.h"
#include "tests/transport/raw_socket.h"
#include "tests/transport/tcp_node.h"
#include "transport/tcp/frame.h"
#include "transport/tcp/greeting.h"

namespace ranklab::transport {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::uint64_t kSecret = 42;

Answer AnswerTo(TcpNode& node, const Hello& hello) {
  RawSocket stranger(node.port().port());
  EXPECT_TRUE(stranger.Write(EncodeHello(hello)));
  const std::vector<std::byte> bytes = stranger.Read(kAnswerBytes);
  EXPECT_EQ(bytes.size(), kAnswerBytes);
  if (bytes.size() != kAnswerBytes) {
    return Answer::kWelcome;
  }
  return DecodeAnswer(std::span<const std::byte, kAnswerBytes>(bytes)).value();
}

MessageHeader PostedHeader(Bytes size) {
  MessageHeader header;
  header.envelope.generation = 1;
  header.size = size;
  return header;
}

// A count that a loop increases after the stranger got its answer.
void ExpectRefused(TcpNode& node, std::int64_t count) {
  for (int i = 0; i < 3000 && node.port().refused_connections() < count; ++i) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_EQ(node.port().refused_connections(), count);
}

TEST(TcpPort, SaysWhichPortIsTakenAndWhatToDo) {
  LiveLoop loop;
  const auto first = TcpPort::Listen(loop, "127.0.0.1:0");
  ASSERT_TRUE(first.ok());
  const std::string port = std::to_string((*first)->port());
  const auto second = TcpPort::Listen(loop, "127.0.0.1:" + port);
  ASSERT_FALSE(second.ok());
  EXPECT_TRUE(absl::IsAlreadyExists(second.status()));
  EXPECT_THAT(MessageOf(second.status()),
              AllOf(HasSubstr("port " + port), HasSubstr("choose another port")));
}

TEST(TcpPort, IsFreeAgainOnceDestroyed) {
  LiveLoop loop;
  auto first = TcpPort::Listen(loop, "127.0.0.1:0");
  ASSERT_TRUE(first.ok());
  const std::string address = "127.0.0.1:" + std::to_string((*first)->port());
  first->reset();
  EXPECT_TRUE(TcpPort::Listen(loop, address).ok());
}

TEST(TcpPort, RefusesAddressesThatAreNone) {
  LiveLoop loop;
  for (const char* address : {"", "localhost", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:12x",
                              ":80", "::1:80", "192.0.2.1:0"}) {
    const auto port = TcpPort::Listen(loop, address);
    EXPECT_TRUE(absl::IsInvalidArgument(port.status())) << address << ": " << port.status();
  }
  EXPECT_TRUE(TcpPort::Listen(loop, "localhost:0").ok());
}

TEST(TcpPort, OpensAtOnceWithoutPeers) {
  TcpNode node(Worker(0));
  Ending ready;
  node.Open({}, ready);
  EXPECT_EQ(ready.Wait(), absl::OkStatus());
}

TEST(TcpPort, NamesThePeersThatAreMissingAtTheDeadline) {
  TcpNode node(Worker(1));
  TcpNode silent(Worker(2));  // listens, never opens
  LiveLoop loop;
  std::string nobody;
  {
    const auto port = TcpPort::Listen(loop, "127.0.0.1:0");
    nobody = "127.0.0.1:" + std::to_string((*port)->port());
  }
  Ending ready;
  node.Open({{Worker(0), "127.0.0.1:1"}, silent.AsPeer(), {Server(0), nobody}}, ready,
            milliseconds(200));
  const absl::Status status = ready.Wait();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_THAT(
      MessageOf(status),
      AllOf(HasSubstr("waited 0.2"), HasSubstr("worker 0 at 127.0.0.1:1 (it has not dialed"),
            HasSubstr("worker 2 at " + silent.AsPeer().address + " (connected, but"),
            HasSubstr("server 0 at " + nobody + " (connecting: Connection refused")));
}

TEST(TcpPort, WaitsForAPeerThatListensLater) {
  std::string address;
  {
    LiveLoop loop;
    const auto port = TcpPort::Listen(loop, "127.0.0.1:0");
    address = "127.0.0.1:" + std::to_string((*port)->port());
  }
  TcpNode dialer(Worker(0));
  Ending dialer_ready, late_ready;
  dialer.Open({{Worker(1), address}}, dialer_ready);
  std::this_thread::sleep_for(milliseconds(50));
  LiveLoop loop;
  auto port = TcpPort::Listen(loop, address);
  ASSERT_TRUE(port.ok()) << port.status();
  std::unique_ptr<Wire> wire;
  loop.RunAndWait([&] {
    wire = (*port)->Open({.self = Worker(1),
                          .generation = 1,
                          .secret = kSecret,
                          .peers = {dialer.AsPeer()},
                          .deadline = loop.Now() + seconds(20)},
                         late_ready.Done());
  });
  EXPECT_EQ(dialer_ready.Wait(), absl::OkStatus());
  EXPECT_EQ(late_ready.Wait(), absl::OkStatus());
  loop.RunAndWait([&] { wire.reset(); });
}

TEST(TcpPort, ParksADialerOfTheNextGeneration) {
  TcpNode dialer(Worker(0)), acceptor(Worker(1));
  Ending first[2], second[2];
  const MessengerOptions one{.generation = 1}, two{.generation = 2};
  dialer.Open({acceptor.AsPeer()}, first[0], seconds(20), one);
  acceptor.Open({dialer.AsPeer()}, first[1], seconds(20), one);
  EXPECT_EQ(first[0].Wait(), absl::OkStatus());
  EXPECT_EQ(first[1].Wait(), absl::OkStatus());
  dialer.Close();
  dialer.Open({acceptor.AsPeer()}, second[0], seconds(20), two);
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_FALSE(second[0].HasEnded());
  acceptor.Close();
  acceptor.Open({dialer.AsPeer()}, second[1], seconds(20), two);
  EXPECT_EQ(second[0].Wait(), absl::OkStatus());
  EXPECT_EQ(second[1].Wait(), absl::OkStatus());
  EXPECT_EQ(acceptor.port().refused_connections(), 0);

  // And of a generation that is over.
  const Hello late{.generation = 1, .secret = kSecret, .from = Worker(0), .to = Worker(1)};
  EXPECT_EQ(AnswerTo(acceptor, late), Answer::kOtherGeneration);
  ExpectRefused(acceptor, 1);
}

class TcpStranger : public ::testing::Test {
 protected:
  TcpStranger() {
    SetLogLevel(LogLevel::kError);  // refusals are what these tests make
    Ending ready[2];
    dialer.Open({node.AsPeer()}, ready[0]);
    node.Open({dialer.AsPeer()}, ready[1]);
    EXPECT_EQ(ready[0].Wait(), absl::OkStatus());
    EXPECT_EQ(ready[1].Wait(), absl::OkStatus());
  }
  ~TcpStranger() override {
    ExpectStillWorks();
    SetLogLevel(LogLevel::kWarning);
  }

  void ExpectStillWorks() {
    const Storage body = BytesOf("unharmed");
    Storage received(body.size());
    Ending send, recv;
    const Envelope envelope{.generation = 1, .part = ++part};
    node.Recv(Worker(0), envelope, LandingOf(received), recv);
    dialer.Send(Worker(1), envelope, PayloadOf(body), send);
    EXPECT_EQ(send.Wait(), absl::OkStatus());
    EXPECT_EQ(recv.Wait(), absl::OkStatus());
    EXPECT_EQ(received, body);
  }

  std::uint32_t part = 0;
  TcpNode dialer{Worker(0)};
  TcpNode node{Worker(1)};
};

TEST_F(TcpStranger, IsToldWhyItIsRefusedAndCounted) {
  const Hello good{.generation = 1, .secret = kSecret, .from = Worker(0), .to = Worker(1)};
  Hello hello = good;
  hello.secret = 43;
  EXPECT_EQ(AnswerTo(node, hello), Answer::kWrongSecret);
  hello = good;
  hello.generation = 0;
  EXPECT_EQ(AnswerTo(node, hello), Answer::kOtherGeneration);
  hello = good;
  hello.from = Worker(7);
  EXPECT_EQ(AnswerTo(node, hello), Answer::kNotExpected);
  hello = good;
  hello.to = Worker(3);
  EXPECT_EQ(AnswerTo(node, hello), Answer::kNotExpected);
  EXPECT_EQ(AnswerTo(node, good), Answer::kAlreadyConnected);
  ExpectRefused(node, 5);
}

TEST_F(TcpStranger, WithGarbageIsClosed) {
  Random random(3);
  for (int i = 1; i <= 20; ++i) {
    RawSocket stranger(node.port().port());
    ASSERT_TRUE(stranger.connected());
    stranger.Write(RandomBytes(kHelloBytes + random.Below(3000), random));
    EXPECT_TRUE(stranger.IsClosedByPeer());
    ExpectRefused(node, i);
  }
}

TEST_F(TcpStranger, WhoHangsUpEarlyIsRefused) {
  for (int i = 1; i <= 5; ++i) {
    {
      RawSocket stranger(node.port().port());
      stranger.Write(std::vector<std::byte>(static_cast<std::size_t>(i)));
    }
    ExpectRefused(node, i);
  }
}

// A peer that knows the secret, and then does not behave. Its connection ends; the other stands.
class TcpLiar : public ::testing::Test {
 protected:
  TcpLiar() {
    SetLogLevel(LogLevel::kError);
    Ending honest_ready, ready;
    node.Open({honest.AsPeer(), {Worker(1), "127.0.0.1:1"}}, ready);
    honest.Open({node.AsPeer()}, honest_ready);
    liar.emplace(node.port().port());
    EXPECT_TRUE(liar->Write(
        EncodeHello({.generation = 1, .secret = kSecret, .from = Worker(1), .to = Worker(2)})));
    EXPECT_EQ(liar->Read(kAnswerBytes).size(), kAnswerBytes);
    EXPECT_EQ(ready.Wait(), absl::OkStatus());
    EXPECT_EQ(honest_ready.Wait(), absl::OkStatus());
    node.loop().RunAndWait([&] {
      node.messenger().OnLost([&](Endpoint peer, const absl::Status& why) {
        EXPECT_EQ(peer, Worker(1));
        lost.Done()(why);
      });
      node.messenger().Recv(Worker(1), {.generation = 1}, LandingOf(landing), received.Done());
    });
  }
  ~TcpLiar() override {
    EXPECT_TRUE(absl::IsUnavailable(received.Wait()));
    EXPECT_TRUE(liar->IsClosedByPeer());
    const Storage body = BytesOf("unharmed");
    Storage honest_bytes(body.size());
    Ending send, recv;
    node.Recv(Worker(0), {.generation = 1}, LandingOf(honest_bytes), recv);
    honest.Send(Worker(2), {.generation = 1}, PayloadOf(body), send);
    EXPECT_EQ(send.Wait(), absl::OkStatus());
    EXPECT_EQ(recv.Wait(), absl::OkStatus());
    EXPECT_EQ(honest_bytes, body);
    node.Close();
    SetLogLevel(LogLevel::kWarning);
  }

  TcpNode honest{Worker(0)};
  TcpNode node{Worker(2)};
  std::optional<RawSocket> liar;
  Storage landing = Storage(8);
  Ending lost, received;
};

TEST_F(TcpLiar, WithAWrongMagicIsLost) {
  liar->Write(Storage(kHeaderBytes, std::byte{'x'}));
  EXPECT_THAT(MessageOf(lost.Wait()), AllOf(HasSubstr("worker 1"), HasSubstr("magic")));
}

TEST_F(TcpLiar, WithADamagedHeaderIsLost) {
  HeaderBytes header = EncodeHeader(PostedHeader(8), false);
  header[40] ^= std::byte{1};
  liar->Write(header);
  EXPECT_THAT(MessageOf(lost.Wait()), HasSubstr("wrong checksum"));
}

TEST_F(TcpLiar, WithADamagedBodyIsLost) {
  liar->Write(EncodeHeader(PostedHeader(8), true));
  liar->Write(Storage(8 + kTrailerBytes));
  const absl::Status why = lost.Wait();
  EXPECT_EQ(why.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(why), HasSubstr("body with a wrong checksum"));
}

TEST_F(TcpLiar, WithAnImpossibleSizeIsLost) {
  liar->Write(EncodeHeader(PostedHeader(kBodyBytesMax + 1), false));
  EXPECT_THAT(MessageOf(lost.Wait()), HasSubstr("worker 1"));
}

TEST_F(TcpLiar, WithALargeMessageThatNobodyAskedForIsLost) {
  MessageHeader header = PostedHeader(Bytes{1} << 30);
  header.envelope.lane = 5;  // where no receive is posted
  liar->Write(EncodeHeader(header, false));
  EXPECT_THAT(MessageOf(lost.Wait()), HasSubstr("without credit"));
}

TEST_F(TcpLiar, WhoStopsInTheMiddleOfAMessageIsLost) {
  liar->Write(EncodeHeader(PostedHeader(8), false));
  liar->Write(Storage(4));
  liar->ShutDown();
  EXPECT_THAT(MessageOf(lost.Wait()),
              HasSubstr("worker 1 closed the connection in the middle of a message"));
}

TEST_F(TcpLiar, WithRandomBytesIsLost) {
  Random random(4);
  liar->Write(RandomBytes(100'000, random));
  EXPECT_FALSE(lost.Wait().ok());
}

}  // namespace
}  // namespace ranklab::transport
