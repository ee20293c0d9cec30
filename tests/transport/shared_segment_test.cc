#include "transport/shm/shared_segment.h"

#include <array>
#include <cstdio>

#include <gtest/gtest.h>

#include "core/status.h"

namespace ranklab::transport {
namespace {

TEST(SharedSegment, GoesBothWays) {
  const auto made = SharedSegment::Make(7);
  ASSERT_TRUE(made.ok()) << made.status();
  const auto opened = SharedSegment::Open((*made)->id(), 7);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const std::array<std::byte, 2> bytes = {std::byte{1}, std::byte{2}};
  std::array<std::byte, 2> got{};
  EXPECT_EQ((*made)->writer().Write(bytes.data(), 2), 2u);
  EXPECT_EQ((*made)->reader().Read(got.data(), 2), 0u) << "its own bytes";
  EXPECT_EQ((*opened)->reader().Read(got.data(), 2), 2u);
  EXPECT_EQ(got, bytes);
  EXPECT_EQ((*opened)->writer().Write(bytes.data() + 1, 1), 1u);
  EXPECT_EQ((*made)->reader().Read(got.data(), 2), 1u);
  EXPECT_EQ(got[0], std::byte{2});
}

TEST(SharedSegment, IsOpenedWithItsKeyWhileItIsOffered) {
  const auto made = SharedSegment::Make(7);
  ASSERT_TRUE(made.ok()) << made.status();
  const SegmentId id = (*made)->id();
  EXPECT_TRUE(absl::IsInvalidArgument(SharedSegment::Open(id, 8).status()));
  (*made)->WithdrawOffer();
  EXPECT_FALSE(SharedSegment::Open(id, 7).ok());
}

TEST(SharedSegment, RefusesWhatIsNone) {
  const auto made = SharedSegment::Make(7);
  ASSERT_TRUE(made.ok()) << made.status();
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  const SegmentId other{.process = (*made)->id().process,
                        .descriptor = static_cast<std::uint32_t>(fileno(file))};
  EXPECT_FALSE(SharedSegment::Open(other, 7).ok());
  std::fclose(file);
  EXPECT_TRUE(absl::IsUnavailable(SharedSegment::Open({.process = 0xffffffff}, 7).status()));
}

}  // namespace
}  // namespace ranklab::transport
