#include "transport/shm/shared_ring.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/random.h"

namespace ranklab::transport {
namespace {

constexpr std::size_t kCapacity = 64;

struct Ring {
  RingControl control{};
  std::vector<std::byte> data = std::vector<std::byte>(kCapacity);
  RingWriter writer{control, data.data(), kCapacity};
  RingReader reader{control, data.data(), kCapacity};
};

std::vector<std::byte> Numbers(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  }
  return bytes;
}

TEST(SharedRing, TakesWhatFitsAndGivesWhatIsThere) {
  Ring ring;
  const std::vector<std::byte> bytes = Numbers(100);
  std::vector<std::byte> got(100);
  EXPECT_FALSE(ring.reader.Ready());
  EXPECT_EQ(ring.reader.Read(got.data(), 100), 0u);
  EXPECT_EQ(ring.writer.Write(bytes.data(), 100), kCapacity);
  EXPECT_FALSE(ring.writer.Ready());
  EXPECT_EQ(ring.writer.Write(bytes.data(), 1), 0u);
  EXPECT_EQ(ring.reader.Read(got.data(), 10), 10u);
  EXPECT_EQ(ring.writer.Write(bytes.data() + kCapacity, 36), 10u);  // around the end
  EXPECT_EQ(ring.reader.Read(got.data() + 10, 90), kCapacity);
  EXPECT_TRUE(std::equal(got.begin(), got.begin() + kCapacity + 10, bytes.begin()));
}

TEST(SharedRing, SaysOnceThatASleeperIsToBeWoken) {
  Ring ring;
  const std::vector<std::byte> bytes = Numbers(kCapacity);
  std::vector<std::byte> got(kCapacity);
  EXPECT_TRUE(ring.reader.FallAsleep());
  ring.writer.Write(bytes.data(), 1);
  EXPECT_TRUE(ring.writer.TakeSleeper());
  EXPECT_FALSE(ring.writer.TakeSleeper());
  EXPECT_FALSE(ring.reader.FallAsleep()) << "there is a byte";
  EXPECT_FALSE(ring.writer.TakeSleeper());

  ring.writer.Write(bytes.data(), kCapacity);  // full
  EXPECT_TRUE(ring.writer.FallAsleep());
  ring.reader.Read(got.data(), 1);
  EXPECT_FALSE(ring.reader.TakeSleeper()) << "for one byte of room";
  ring.reader.Read(got.data(), kCapacity / 2);
  EXPECT_TRUE(ring.reader.TakeSleeper());
}

TEST(SharedRing, DoesNotFollowPositionsThatCannotBe) {
  Ring ring;
  std::vector<std::byte> got(2 * kCapacity);
  ring.control.written = kCapacity + 1;
  EXPECT_EQ(ring.reader.Read(got.data(), got.size()), 0u);
  EXPECT_TRUE(ring.reader.Corrupt());
  EXPECT_TRUE(ring.reader.Ready()) << "nobody may wait for it";
  ring.control.read = 1;  // more than was written
  EXPECT_EQ(ring.writer.Write(got.data(), 1), 0u);
  EXPECT_TRUE(ring.writer.Corrupt());
}

TEST(SharedRing, CarriesBytesBetweenThreadsInOrder) {
  Ring ring;
  const std::vector<std::byte> bytes = Numbers(200'000);
  std::thread writer([&] {
    Random random(1);
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t size = std::min<std::size_t>(1 + random.Below(90), bytes.size() - at);
      const std::size_t count = ring.writer.Write(bytes.data() + at, size);
      at += count;
      if (count == 0) {
        std::this_thread::yield();
      }
    }
  });
  Random random(2);
  std::vector<std::byte> got(bytes.size());
  for (std::size_t at = 0; at < got.size();) {
    const std::size_t size = std::min<std::size_t>(1 + random.Below(90), got.size() - at);
    const std::size_t count = ring.reader.Read(got.data() + at, size);
    at += count;
    if (count == 0) {
      std::this_thread::yield();
    }
  }
  writer.join();
  EXPECT_EQ(got, bytes);
}

}  // namespace
}  // namespace ranklab::transport
