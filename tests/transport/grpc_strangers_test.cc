// Who is not a peer, or does not behave like one, against the gRPC wire.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include "core/log.h"
#include "protos/wire.grpc.pb.h"
#include "tests/transport/grpc_cluster.h"
#include "transport/grpc/frame_codec.h"

namespace ranklab::transport {
namespace {

using testing::HasSubstr;

constexpr Endpoint kWorker0{Role::kWorker, 0};
constexpr Endpoint kWorker1{Role::kWorker, 1};
constexpr Endpoint kServer0{Role::kServer, 0};

class QuietTest : public testing::Test {
 protected:
  QuietTest() { SetLogLevel(LogLevel::kError); }  // refusals are what these tests are about
};

// Somebody else's client, with protobuf's own messages.
class Stranger {
 public:
  explicit Stranger(const std::string& address)
      : stub_(v1::TensorWire::NewStub(
            grpc::CreateChannel(address, grpc::InsecureChannelCredentials()))) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    stream_ = stub_->Stream(&context_);
  }

  static v1::Frame HelloFrom(Endpoint from, Endpoint to, std::uint32_t generation = 1) {
    v1::Frame frame;
    v1::Hello& hello = *frame.mutable_hello();
    hello.set_magic(kWireMagic);
    hello.set_generation(generation);
    hello.set_secret(GrpcNode::kSecret);
    hello.set_from_role(static_cast<std::uint32_t>(from.role));
    hello.set_from_rank(static_cast<std::uint32_t>(from.rank));
    hello.set_to_role(static_cast<std::uint32_t>(to.role));
    hello.set_to_rank(static_cast<std::uint32_t>(to.rank));
    return frame;
  }

  bool Write(const v1::Frame& frame) { return stream_->Write(frame); }
  bool Read(v1::Frame& frame) { return stream_->Read(&frame); }

  // How the other side ends it.
  grpc::Status ReadToTheEnd() {
    for (v1::Frame frame; stream_->Read(&frame);) {
    }
    return stream_->Finish();
  }

 private:
  std::unique_ptr<v1::TensorWire::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::Frame, v1::Frame>> stream_;
};

class StrangersTest : public QuietTest {
 protected:
  StrangersTest() { Connect({&worker0_, &server_}); }
  ~StrangersTest() override {
    // Whatever they did: those who belong together do not notice.
    Outcomes sent;
    worker0_.Send(kServer0, {}, {}, sent.Done());
    EXPECT_TRUE(sent.WaitFor(1).front().ok());
    server_.sink().messages.WaitFor([](const auto& all) { return all.size() == 1; });
    EXPECT_EQ(server_.port().refused_connections(), 1);
  }

  void ExpectRefused(const v1::Frame& hello, grpc::StatusCode code, const std::string& reason) {
    Stranger stranger(server_.address());
    stranger.Write(hello);
    const grpc::Status status = stranger.ReadToTheEnd();
    EXPECT_EQ(status.error_code(), code) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(reason));
  }

  GrpcNode worker0_{kWorker0};
  GrpcNode server_{kServer0};
};

TEST_F(StrangersTest, WithoutTheMagicAreRefused) {
  v1::Frame hello = Stranger::HelloFrom(kWorker1, kServer0);
  hello.mutable_hello()->set_magic(1);
  ExpectRefused(hello, grpc::PERMISSION_DENIED, "wrong magic");
}

TEST_F(StrangersTest, WithoutTheSecretAreRefused) {
  v1::Frame hello = Stranger::HelloFrom(kWorker0, kServer0);
  hello.mutable_hello()->set_secret(1);
  ExpectRefused(hello, grpc::PERMISSION_DENIED, "not the secret of generation 1");
}

TEST_F(StrangersTest, OfAnEarlierGenerationAreRefused) {
  ExpectRefused(Stranger::HelloFrom(kWorker0, kServer0, 0), grpc::FAILED_PRECONDITION,
                "generation 0 is over here");
}

TEST_F(StrangersTest, WhoMeanSomebodyElseAreRefused) {
  ExpectRefused(Stranger::HelloFrom(kWorker0, kWorker1), grpc::FAILED_PRECONDITION,
                "meant for worker 1, here is server 0");
}

TEST_F(StrangersTest, WhoAreNoPeersAreRefused) {
  ExpectRefused(Stranger::HelloFrom(kWorker1, kServer0), grpc::FAILED_PRECONDITION,
                "server 0 expects no stream from worker 1");
}

TEST_F(StrangersTest, WhoPlayAConnectedPeerAreRefused) {
  ExpectRefused(Stranger::HelloFrom(kWorker0, kServer0), grpc::ALREADY_EXISTS,
                "worker 0 has connected already");
}

TEST_F(StrangersTest, WhoBeginWithAMessageAreRefused) {
  v1::Frame frame;
  frame.mutable_header()->set_size(1ULL << 40);
  ExpectRefused(frame, grpc::PERMISSION_DENIED, "the first frame is no hello");
}

TEST_F(StrangersTest, WhoSpeakSomethingElseAreRefused) {
  v1::Frame frame;  // with a payload and no checksum of it
  frame.set_payload("GET / HTTP/1.1");
  ExpectRefused(frame, grpc::PERMISSION_DENIED, "no hello");
}

// A peer that knows the secret and then misbehaves.
class BrokenPeerTest : public QuietTest {
 protected:
  BrokenPeerTest() {
    Outcomes ready;
    server_.Open(1, {{kWorker0, "127.0.0.1:1"}}, ready.Done());
    peer_ = std::make_unique<Stranger>(server_.address());
    peer_->Write(Stranger::HelloFrom(kWorker0, kServer0));
    v1::Frame answer;
    EXPECT_TRUE(peer_->Read(answer));
    EXPECT_EQ(answer.hello().secret(), GrpcNode::kSecret);
    EXPECT_TRUE(ready.WaitFor(1).front().ok());
  }

  void ExpectLost(const v1::Frame& frame, const std::string& reason) {
    peer_->Write(frame);
    const auto lost = server_.sink().lost.WaitFor([](const auto& all) { return !all.empty(); });
    ASSERT_EQ(lost.size(), 1u);
    EXPECT_EQ(lost[0].second.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(MessageOf(lost[0].second), HasSubstr("worker 0 at 127.0.0.1:1: " + reason));
    EXPECT_THAT(peer_->ReadToTheEnd().error_message(), HasSubstr(reason));
  }

  GrpcNode server_{kServer0};
  std::unique_ptr<Stranger> peer_;
};

TEST_F(BrokenPeerTest, IsLostForAWrongChecksum) {
  v1::Frame frame;
  frame.mutable_header()->set_size(4);
  frame.set_payload("body");
  frame.set_checksum(1);
  ExpectLost(frame, "the checksum of 4 payload bytes does not match");
}

TEST_F(BrokenPeerTest, IsLostForMoreBytesThanAnnounced) {
  v1::Frame frame;
  ASSERT_TRUE(frame.ParseFromString(
      EncodeFrame(nullptr, {reinterpret_cast<const std::byte*>("body"), 4}) + "body"));
  frame.mutable_header()->set_size(3);
  ExpectLost(frame, "a frame of 4 bytes where 3 are missing");
}

TEST_F(BrokenPeerTest, IsLostForBytesWithoutAMessage) {
  v1::Frame frame;
  ASSERT_TRUE(frame.ParseFromString(
      EncodeFrame(nullptr, {reinterpret_cast<const std::byte*>("body"), 4}) + "body"));
  ExpectLost(frame, "a frame that belongs to no message");
}

TEST_F(BrokenPeerTest, IsLostForAMessageWithinAMessage) {
  v1::Frame frame;
  frame.mutable_header()->set_size(10);
  peer_->Write(frame);
  ExpectLost(frame, "a new message after 0 of 10 bytes");
}

TEST_F(BrokenPeerTest, IsLostForWhatTheSinkDoesNotTake) {
  v1::Frame frame;
  frame.mutable_header()->set_method(RecordingSink::kMethodToRefuse);
  ExpectLost(frame, "method 4711 makes no sense here");
}

TEST_F(BrokenPeerTest, IsLostForASecondHello) {
  ExpectLost(Stranger::HelloFrom(kWorker0, kServer0), "a second hello");
}

TEST_F(BrokenPeerTest, MaySendInProtobufsOwnWords) {
  const std::vector<std::byte> body(100, std::byte{7});
  const std::string text(reinterpret_cast<const char*>(body.data()), body.size());
  v1::Frame frame;
  ASSERT_TRUE(frame.ParseFromString(
      EncodeFrame(nullptr, Payload{body.data(), static_cast<Bytes>(body.size())}) + text));
  frame.mutable_header()->set_size(200);
  frame.mutable_header()->set_request_id(9);
  peer_->Write(frame);
  frame.clear_header();
  peer_->Write(frame);
  const auto received =
      server_.sink().messages.WaitFor([](const auto& all) { return !all.empty(); });
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(received[0].header.request.id, 9u);
  EXPECT_EQ(received[0].body.size(), 200u);
}

}  // namespace
}  // namespace ranklab::transport
