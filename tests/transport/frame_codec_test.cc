// Frames against protobuf's own reader and writer, and against bytes that are no frames.
#include "transport/grpc/frame_codec.h"

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include "core/random.h"
#include "core/status.h"
#include "protos/wire.pb.h"
#include "transport/grpc/proto_bytes.h"

namespace ranklab::transport {
namespace {

using testing::HasSubstr;

std::vector<std::uint64_t> Seeds() {
  if (const char* seed = std::getenv("RANKLAB_SEED")) {
    return {std::strtoull(seed, nullptr, 10)};
  }
  std::vector<std::uint64_t> seeds(200);
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    seeds[i] = i + 1;
  }
  return seeds;
}

std::string Replay(std::uint64_t seed) {
  return "replay: RANKLAB_SEED=" + std::to_string(seed) + " frame_codec_test";
}

// Mostly small, sometimes anything: both ends of the varint's range.
std::uint64_t AnyWord(Random& random) { return random.Next() >> random.Below(64); }

std::int64_t AnySigned(Random& random) {
  const auto value = static_cast<std::int64_t>(AnyWord(random));
  return random.Below(2) == 0 ? value : -value;
}

MessageHeader AnyHeader(Random& random) {
  MessageHeader header;
  header.kind = static_cast<MessageKind>(random.Below(5));
  header.envelope = {.generation = static_cast<std::uint32_t>(AnyWord(random)),
                     .group = static_cast<std::uint32_t>(AnyWord(random)),
                     .sequence = AnyWord(random),
                     .lane = static_cast<std::uint32_t>(AnyWord(random)),
                     .part = static_cast<std::uint32_t>(AnyWord(random))};
  header.size = static_cast<Bytes>(AnyWord(random) >> 1);
  header.request = {.generation = header.envelope.generation,
                    .method = static_cast<std::uint32_t>(AnyWord(random)),
                    .id = AnyWord(random),
                    .step = AnySigned(random),
                    .begin = AnySigned(random),
                    .end = AnySigned(random),
                    .weight = random.Below(3) == 0 ? 0.0 : random.Normal() * 1e3,
                    .ends_step = random.Below(2) == 1,
                    .overflow = random.Below(2) == 1};
  header.reply = {
      .clock = AnySigned(random), .version = AnySigned(random), .skipped = random.Below(2) == 1};
  header.status = static_cast<std::int32_t>(AnySigned(random));
  header.error = std::string(random.Below(40), 'e');
  header.departs = Nanos(AnySigned(random));
  header.due = Nanos(AnySigned(random));
  return header;
}

std::string AnyBytes(Random& random, std::uint64_t below) {
  std::string bytes(random.Below(below), '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(random.Next());
  }
  return bytes;
}

Payload PayloadOf(const std::string& bytes) {
  return {reinterpret_cast<const std::byte*>(bytes.data()), static_cast<Bytes>(bytes.size())};
}

void ExpectEqual(const MessageHeader& ours, const v1::Header& theirs) {
  EXPECT_EQ(static_cast<std::uint32_t>(ours.kind), theirs.kind());
  EXPECT_EQ(ours.envelope.generation, theirs.generation());
  EXPECT_EQ(ours.envelope.group, theirs.group());
  EXPECT_EQ(ours.envelope.sequence, theirs.sequence());
  EXPECT_EQ(ours.envelope.lane, theirs.lane());
  EXPECT_EQ(ours.envelope.part, theirs.part());
  EXPECT_EQ(static_cast<std::uint64_t>(ours.size), theirs.size());
  EXPECT_EQ(ours.request.generation, theirs.generation());
  EXPECT_EQ(ours.request.method, theirs.method());
  EXPECT_EQ(ours.request.id, theirs.request_id());
  EXPECT_EQ(ours.request.step, theirs.step());
  EXPECT_EQ(ours.request.begin, theirs.begin());
  EXPECT_EQ(ours.request.end, theirs.end());
  EXPECT_EQ(ours.request.weight, theirs.weight());
  EXPECT_EQ(ours.request.ends_step, theirs.ends_step());
  EXPECT_EQ(ours.request.overflow, theirs.overflow());
  EXPECT_EQ(ours.reply.clock, theirs.clock());
  EXPECT_EQ(ours.reply.version, theirs.version());
  EXPECT_EQ(ours.reply.skipped, theirs.skipped());
  EXPECT_EQ(ours.status, theirs.status());
  EXPECT_EQ(ours.error, theirs.error());
  EXPECT_EQ(ours.departs.count(), theirs.departs_ns());
  EXPECT_EQ(ours.due.count(), theirs.due_ns());
}

// The bytes in slices of chance lengths, some of them empty, as a transport may hand them over.
class Slices {
 public:
  Slices(Random& random, const std::string& bytes) {
    for (std::size_t begin = 0; begin < bytes.size();) {
      const std::size_t size = std::min<std::size_t>(bytes.size() - begin, random.Below(50));
      pieces_.push_back(bytes.substr(begin, size));
      begin += size;
    }
    for (const std::string& piece : pieces_) {
      spans_.emplace_back(reinterpret_cast<const std::byte*>(piece.data()), piece.size());
    }
  }

  absl::StatusOr<Frame> Decode() const { return DecodeFrame(spans_); }

 private:
  std::vector<std::string> pieces_;
  std::vector<ByteSpan> spans_;
};

absl::StatusOr<Frame> DecodeWhole(const std::string& bytes) {
  const ByteSpan span(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size());
  return DecodeFrame({&span, 1});
}

std::string PayloadOf(const Frame& frame) {
  std::string bytes;
  for (const ByteSpan piece : frame.payload) {
    bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  }
  return bytes;
}

// A protobuf frame whose checksum is right: the codec's own prefix has it.
v1::Frame FrameWith(const std::string& payload) {
  v1::Frame frame;
  EXPECT_TRUE(frame.ParseFromString(EncodeFrame(nullptr, PayloadOf(payload)) + payload));
  return frame;
}

void ExpectRefused(const std::string& bytes, const std::string& reason) {
  const absl::StatusOr<Frame> frame = DecodeWhole(bytes);
  ASSERT_FALSE(frame.ok()) << "expected: " << reason;
  EXPECT_EQ(frame.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(frame.status()), HasSubstr(reason));
}

TEST(FrameCodec, ProtobufReadsWhatItWrites) {
  for (const std::uint64_t seed : Seeds()) {
    SCOPED_TRACE(Replay(seed));
    Random random(seed);
    const MessageHeader header = AnyHeader(random);
    const std::string payload = AnyBytes(random, 300);
    v1::Frame frame;
    ASSERT_TRUE(frame.ParseFromString(EncodeFrame(&header, PayloadOf(payload)) + payload));
    EXPECT_TRUE(frame.has_header());
    ExpectEqual(header, frame.header());
    EXPECT_EQ(frame.payload(), payload);
    EXPECT_EQ(frame.checksum() != 0, !payload.empty());
  }
}

TEST(FrameCodec, WritesTheBytesThatProtobufWrites) {
  for (const std::uint64_t seed : Seeds()) {
    SCOPED_TRACE(Replay(seed));
    Random random(seed);
    const MessageHeader header = AnyHeader(random);
    const std::string payload = AnyBytes(random, 300);
    const std::string ours = EncodeFrame(&header, PayloadOf(payload)) + payload;
    v1::Frame frame;
    ASSERT_TRUE(frame.ParseFromString(ours));
    EXPECT_EQ(frame.SerializeAsString(), ours);
  }
}

TEST(FrameCodec, ReadsWhatProtobufWritesOverAnySlices) {
  for (const std::uint64_t seed : Seeds()) {
    SCOPED_TRACE(Replay(seed));
    Random random(seed);
    const std::string payload = AnyBytes(random, 300);
    const MessageHeader header = AnyHeader(random);
    v1::Frame theirs;
    ASSERT_TRUE(theirs.ParseFromString(EncodeFrame(&header, PayloadOf(payload)) + payload));
    const std::string bytes = theirs.SerializeAsString();
    const Slices slices(random, bytes);
    const absl::StatusOr<Frame> frame = slices.Decode();
    ASSERT_TRUE(frame.ok()) << frame.status();
    ASSERT_TRUE(frame->header.has_value());
    ExpectEqual(*frame->header, theirs.header());
    EXPECT_EQ(PayloadOf(*frame), payload);
    EXPECT_EQ(frame->payload_size, static_cast<Bytes>(payload.size()));
    EXPECT_EQ(frame->encoded_size, static_cast<Bytes>(bytes.size()));
    EXPECT_FALSE(frame->hello.has_value());
  }
}

TEST(FrameCodec, HelloMakesTheRoundTripAndIsProtobufs) {
  const Hello hello = {.generation = 7,
                       .secret = 0xfeedfacecafebeef,
                       .from = {Role::kWorker, 3},
                       .to = {Role::kServer, 1}};
  v1::Frame theirs;
  ASSERT_TRUE(theirs.ParseFromString(EncodeHello(hello)));
  EXPECT_EQ(theirs.hello().magic(), kWireMagic);
  EXPECT_EQ(theirs.hello().secret(), hello.secret);
  EXPECT_EQ(theirs.hello().to_role(), 1u);
  const absl::StatusOr<Frame> frame = DecodeWhole(theirs.SerializeAsString());
  ASSERT_TRUE(frame.ok()) << frame.status();
  EXPECT_EQ(frame->hello, hello);
}

TEST(FrameCodec, AnEmptyHelloHasNoMagic) {
  v1::Frame theirs;
  theirs.mutable_hello();
  const absl::StatusOr<Frame> frame = DecodeWhole(theirs.SerializeAsString());
  ASSERT_TRUE(frame.ok()) << frame.status();
  EXPECT_NE(frame->hello->magic, kWireMagic);
}

TEST(FrameCodec, ThePayloadStaysWhereItIs) {
  const std::string payload(1000, 'p');
  const std::string bytes = EncodeFrame(nullptr, PayloadOf(payload)) + payload;
  const absl::StatusOr<Frame> frame = DecodeWhole(bytes);
  ASSERT_TRUE(frame.ok()) << frame.status();
  ASSERT_EQ(frame->payload.size(), 1u);
  EXPECT_EQ(reinterpret_cast<const char*>(frame->payload.front().data()),
            bytes.data() + bytes.size() - payload.size());
}

TEST(FrameCodec, SkipsFieldsThatItDoesNotKnow) {
  ProtoWriter unknown;
  unknown.Varint(100, 5);
  unknown.Fixed32(101, 6);
  unknown.Fixed64(102, 7);
  unknown.Text(103, "later");
  const std::string payload = "body";
  const std::string bytes =
      unknown.bytes() + EncodeFrame(nullptr, PayloadOf(payload)) + payload + unknown.bytes();
  const absl::StatusOr<Frame> frame = DecodeWhole(bytes);
  ASSERT_TRUE(frame.ok()) << frame.status();
  EXPECT_EQ(PayloadOf(*frame), payload);
}

TEST(FrameCodec, AnErrorTravelsShortAndAsValidUtf8) {
  MessageHeader header;
  header.error = std::string(1022, 'x') + "\xc3\xa9\xc3\xa9";  // the limit cuts the second letter
  v1::Frame frame;
  ASSERT_TRUE(frame.ParseFromString(EncodeFrame(&header, {})));
  EXPECT_EQ(frame.header().error(), std::string(1022, 'x') + "\xc3\xa9");
  for (const std::string wrong :
       {"\xff", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc0\xaf"}) {
    header.error = "a" + wrong + "b";
    ASSERT_TRUE(frame.ParseFromString(EncodeFrame(&header, {})));
    EXPECT_EQ(frame.header().error(), "a" + std::string(wrong.size(), '?') + "b");
  }
  for (const std::string right : {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"}) {
    header.error = right;
    ASSERT_TRUE(frame.ParseFromString(EncodeFrame(&header, {})));
    EXPECT_EQ(frame.header().error(), right);
  }
}

TEST(FrameCodec, RefusesAPayloadThatChangedOnTheWay) {
  const std::string payload = "0123456789";
  std::string bytes = EncodeFrame(nullptr, PayloadOf(payload)) + payload;
  bytes.back() ^= 1;
  ExpectRefused(bytes, "the checksum of 10 payload bytes does not match");
  v1::Frame without = FrameWith(payload);
  without.clear_checksum();
  ExpectRefused(without.SerializeAsString(), "checksum");
}

TEST(FrameCodec, RefusesValuesOutOfRange) {
  v1::Frame frame;
  frame.mutable_header()->set_kind(5);
  ExpectRefused(frame.SerializeAsString(), "header: field 1 is 5, at most 4 is known");
  frame.mutable_header()->set_kind(0);
  frame.mutable_header()->set_size(std::uint64_t{1} << 63);
  ExpectRefused(frame.SerializeAsString(), "header: a message of 9223372036854775808 bytes");
  frame.mutable_header()->set_size(0);
  frame.mutable_header()->set_error(std::string(1025, 'e'));
  ExpectRefused(frame.SerializeAsString(), "field 20 has 1025 bytes, at most 1024 are allowed");

  v1::Frame hello;
  hello.mutable_hello()->set_from_rank(0x80000000);
  ExpectRefused(hello.SerializeAsString(), "hello: field 5 is 2147483648, out of range");
  hello.mutable_hello()->set_from_rank(0);
  hello.mutable_hello()->set_to_role(2);
  ExpectRefused(hello.SerializeAsString(), "hello: field 6");
}

TEST(FrameCodec, RefusesFieldsThatComeTwice) {
  v1::Frame frame = FrameWith("payload");
  frame.mutable_header();
  frame.mutable_hello();
  const std::string bytes = frame.SerializeAsString();
  ExpectRefused(bytes + bytes, "comes twice");
}

TEST(FrameCodec, RefusesLengthsBeyondTheFrame) {
  ProtoWriter writer;
  writer.BytesFollow(15, Bytes{1} << 62);
  ExpectRefused(writer.bytes() + "short", "cut short: a field of 4611686018427387904 bytes");
  ExpectRefused(std::string("\x7a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 11), "64 bits");
  ExpectRefused(std::string(static_cast<std::size_t>(kFrameBytesMax) + 1, '\0'),
                "a frame of 4194305 bytes; at most 4194304 are allowed");
}

TEST(FrameCodec, RefusesWireTypesThatDoNotBelong) {
  ExpectRefused("\x7b", "wire type 3");  // a group
  ExpectRefused(std::string("\x02\x00", 2), "no field has number 0");
  ExpectRefused(std::string("\x78\x01", 2), "field 15 has wire type 0");
  ExpectRefused(std::string("\x12\x02\x0d\x00", 4), "header: field 1 has wire type 5 instead of 0");
}

// Whatever we accept, protobuf accepts too, and reads the same from it.
void ExpectNoMoreLenientThanProtobuf(Random& random, const std::string& bytes) {
  const Slices slices(random, bytes);
  const absl::StatusOr<Frame> frame = slices.Decode();
  if (!frame.ok()) {
    EXPECT_EQ(frame.status().code(), absl::StatusCode::kInvalidArgument) << frame.status();
    return;
  }
  v1::Frame theirs;
  const google::protobuf::LogSilencer quiet;
  // Protobuf also refuses an error text that is not UTF-8; for us that is a matter of the writer.
  if (frame->header.has_value() && !frame->header->error.empty() &&
      !theirs.ParseFromString(bytes)) {
    return;
  }
  ASSERT_TRUE(theirs.ParseFromString(bytes));
  EXPECT_EQ(theirs.has_hello(), frame->hello.has_value());
  EXPECT_EQ(theirs.has_header(), frame->header.has_value());
  EXPECT_EQ(theirs.payload(), PayloadOf(*frame));
  if (frame->header.has_value()) {
    EXPECT_EQ(theirs.header().request_id(), frame->header->request.id);
    EXPECT_EQ(theirs.header().due_ns(), frame->header->due.count());
  }
}

TEST(FrameCodec, SurvivesFramesThatAreCutAnywhere) {
  Random random(1);
  const MessageHeader header = AnyHeader(random);
  const std::string payload = "a payload of some bytes";
  const std::string bytes = EncodeFrame(&header, PayloadOf(payload)) + payload;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    SCOPED_TRACE(size);
    ExpectNoMoreLenientThanProtobuf(random, bytes.substr(0, size));
  }
  for (std::size_t cut = 1; cut <= payload.size(); ++cut) {
    ExpectRefused(bytes.substr(0, bytes.size() - cut), "cut short");
  }
}

TEST(FrameCodec, SurvivesFramesWithFlippedBytes) {
  for (const std::uint64_t seed : Seeds()) {
    SCOPED_TRACE(Replay(seed));
    Random random(seed);
    const MessageHeader header = AnyHeader(random);
    const std::string payload = AnyBytes(random, 40);
    std::string bytes = EncodeFrame(&header, PayloadOf(payload)) + payload;
    for (int flips = 0; flips < 3; ++flips) {
      bytes[random.Below(bytes.size())] = static_cast<char>(random.Next());
    }
    ExpectNoMoreLenientThanProtobuf(random, bytes);
  }
}

TEST(FrameCodec, SurvivesNoise) {
  for (const std::uint64_t seed : Seeds()) {
    SCOPED_TRACE(Replay(seed));
    Random random(seed);
    for (int i = 0; i < 50; ++i) {
      ExpectNoMoreLenientThanProtobuf(random, AnyBytes(random, 64));
    }
  }
}

}  // namespace
}  // namespace ranklab::transport
