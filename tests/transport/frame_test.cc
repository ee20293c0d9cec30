#include "transport/tcp/frame.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/random.h"
#include "core/status.h"
#include "transport/tcp/greeting.h"

namespace ranklab::transport {
namespace {

using ::testing::HasSubstr;

MessageHeader FullHeader() {
  return {.kind = MessageKind::kReply,
          .envelope = {.generation = 1, .group = 2, .sequence = 3, .lane = 4, .part = 5},
          .request = {.generation = 6,
                      .method = 7,
                      .id = 8,
                      .step = 9,
                      .begin = 10,
                      .end = 11,
                      .weight = 12.5,
                      .ends_step = true,
                      .overflow = true},
          .reply = {.clock = 13, .version = 14, .skipped = true},
          .status = 15,
          .error = "sixteen",
          .size = 17,
          .departs = Nanos(18),
          .due = Nanos(19)};
}

TEST(Frame, CarriesEveryFieldOfAHeader) {
  const MessageHeader sent = FullHeader();
  const absl::StatusOr<FrameHeader> frame = DecodeHeader(EncodeHeader(sent, true));
  ASSERT_TRUE(frame.ok()) << frame.status();
  const MessageHeader& received = frame->message;
  EXPECT_EQ(received.kind, sent.kind);
  EXPECT_EQ(received.envelope, sent.envelope);
  EXPECT_EQ(received.request.generation, 6U);
  EXPECT_EQ(received.request.method, 7U);
  EXPECT_EQ(received.request.id, 8U);
  EXPECT_EQ(received.request.step, 9);
  EXPECT_EQ(received.request.begin, 10);
  EXPECT_EQ(received.request.end, 11);
  EXPECT_EQ(received.request.weight, 12.5);
  EXPECT_TRUE(received.request.ends_step);
  EXPECT_TRUE(received.request.overflow);
  EXPECT_EQ(received.reply.clock, 13);
  EXPECT_EQ(received.reply.version, 14);
  EXPECT_TRUE(received.reply.skipped);
  EXPECT_EQ(received.status, 15);
  EXPECT_EQ(frame->error_bytes, sent.error.size());
  EXPECT_EQ(received.size, 17);
  EXPECT_EQ(received.departs, Nanos(18));
  EXPECT_EQ(received.due, Nanos(19));
  EXPECT_TRUE(frame->has_trailer);
  const absl::StatusOr<FrameHeader> plain = DecodeHeader(EncodeHeader({}, false));
  ASSERT_TRUE(plain.ok());
  EXPECT_FALSE(plain->has_trailer || plain->message.request.ends_step ||
               plain->message.request.overflow || plain->message.reply.skipped);
}

TEST(Frame, RefusesAHeaderWithAnyByteChanged) {
  const HeaderBytes good = EncodeHeader(FullHeader(), true);
  for (std::size_t i = 0; i < good.size(); ++i) {
    HeaderBytes bad = good;
    bad[i] ^= std::byte{0x10};
    EXPECT_FALSE(DecodeHeader(bad).ok()) << "byte " << i;
  }
}

TEST(Frame, SaysWhatIsWrongWithAHeader) {
  MessageHeader header = FullHeader();
  header.size = -1;
  EXPECT_THAT(MessageOf(DecodeHeader(EncodeHeader(header, true)).status()), HasSubstr("-1 bytes"));
  header.size = kBodyBytesMax + 1;
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeHeader(EncodeHeader(header, true)).status()));
  header = FullHeader();
  header.kind = static_cast<MessageKind>(9);
  EXPECT_THAT(MessageOf(DecodeHeader(EncodeHeader(header, true)).status()),
              HasSubstr("unknown kind 9"));
  HeaderBytes other_magic = EncodeHeader(FullHeader(), true);
  other_magic[0] = std::byte{'G'};
  EXPECT_THAT(MessageOf(DecodeHeader(other_magic).status()), HasSubstr("magic"));
  HeaderBytes other_version = EncodeHeader(FullHeader(), true);
  other_version[4] = std::byte{2};
  EXPECT_THAT(MessageOf(DecodeHeader(other_version).status()), HasSubstr("version 2"));
}

TEST(Frame, RefusesRandomBytes) {
  Random random(1);
  for (int i = 0; i < 10'000; ++i) {
    HeaderBytes bytes;
    std::generate(bytes.begin(), bytes.end(),
                  [&] { return static_cast<std::byte>(random.Next()); });
    ASSERT_FALSE(DecodeHeader(bytes).ok());
  }
}

TEST(Frame, ChecksumDoesNotDependOnThePieces) {
  const std::string text = "a body that comes in three pieces";
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  Checksum whole, pieces;
  whole.Add(bytes, static_cast<Bytes>(text.size()));
  pieces.Add(bytes, 3);
  pieces.Add(bytes + 3, 0);
  pieces.Add(bytes + 3, static_cast<Bytes>(text.size()) - 3);
  EXPECT_EQ(whole.Digest(), pieces.Digest());
  pieces.Reset();
  EXPECT_NE(whole.Digest(), pieces.Digest());
}

TEST(Greeting, CarriesEveryFieldAndRefusesDamage) {
  const Hello sent{.generation = 3,
                   .secret = 0x123456789abcdef0,
                   .from = {Role::kWorker, 2},
                   .to = {Role::kServer, 1},
                   .segment = {.process = 12, .descriptor = 5}};
  const HelloBytes good = EncodeHello(sent);
  const absl::StatusOr<Hello> received = DecodeHello(good);
  ASSERT_TRUE(received.ok());
  EXPECT_EQ(received->generation, sent.generation);
  EXPECT_EQ(received->secret, sent.secret);
  EXPECT_EQ(received->from, sent.from);
  EXPECT_EQ(received->to, sent.to);
  EXPECT_EQ(received->segment.process, sent.segment.process);
  EXPECT_EQ(received->segment.descriptor, sent.segment.descriptor);
  for (std::size_t i = 0; i < good.size(); ++i) {
    HelloBytes bad = good;
    bad[i] ^= std::byte{0x40};
    EXPECT_FALSE(DecodeHello(bad).ok()) << "byte " << i;
  }
}

TEST(Greeting, AnswersCarryTheirReason) {
  for (const Answer answer :
       {Answer::kWelcome, Answer::kNotOpenYet, Answer::kOtherGeneration, Answer::kWrongSecret,
        Answer::kNotExpected, Answer::kAlreadyConnected, Answer::kWelcomeToShare}) {
    AnswerBytes bytes = EncodeAnswer(answer);
    const absl::StatusOr<Answer> received = DecodeAnswer(bytes);
    ASSERT_TRUE(received.ok());
    EXPECT_EQ(*received, answer);
    EXPECT_FALSE(ReasonOf(answer).empty());
    bytes[5] ^= std::byte{1};
    EXPECT_FALSE(DecodeAnswer(bytes).ok());
  }
}

}  // namespace
}  // namespace ranklab::transport
