// Random traffic: every message of every kind arrives exactly once with its own bytes.
#include <cstdlib>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/random.h"
#include "tests/transport/messenger_cluster.h"
#include "transport/messenger.h"

namespace ranklab::transport {
namespace {

constexpr int kEndpoints = 4;
constexpr int kMessages = 400;
constexpr MessengerOptions kOptions{
    .generation = 5, .eager_limit = 64, .eager_bytes_per_peer = 1 << 20};

struct Transfer {
  Endpoint from;
  Endpoint to;
  Envelope envelope;
  Storage sent;
  Storage received;
  Outcome send;
  Outcome recv;
};

// Below, at and above the eager limit, and empty.
std::size_t RandomSize(Random& random) {
  constexpr std::size_t kSizes[] = {0, 1, 63, 64, 65, 1000};
  return kSizes[random.Below(std::size(kSizes))];
}

std::deque<Transfer> RandomTransfers(Random& random) {
  std::deque<Transfer> transfers;
  for (int i = 0; i < kMessages; ++i) {
    Transfer& transfer = transfers.emplace_back();
    transfer.from = Worker(static_cast<Rank>(random.Below(kEndpoints)));
    do {
      transfer.to = Worker(static_cast<Rank>(random.Below(kEndpoints)));
    } while (transfer.to == transfer.from);
    transfer.envelope = {.generation = 5,
                         .group = static_cast<std::uint32_t>(random.Below(2)),
                         .sequence = random.Below(3),
                         .lane = static_cast<std::uint32_t>(random.Below(4)),
                         .part = static_cast<std::uint32_t>(i)};
    transfer.sent = RandomBytes(RandomSize(random), random);
    transfer.received.resize(transfer.sent.size());
  }
  return transfers;
}

// Sends, receives, and in between some of the loop's events, in any order.
void PlayInRandomOrder(MessengerCluster& cluster, std::deque<Transfer>& transfers, Random& random) {
  std::vector<int> actions;  // 2 * i: send, 2 * i + 1: receive
  for (int i = 0; i < 2 * kMessages; ++i) {
    actions.push_back(i);
  }
  random.Shuffle(std::span<int>(actions));
  for (const int action : actions) {
    Transfer& transfer = transfers[static_cast<std::size_t>(action / 2)];
    if (action % 2 == 0) {
      cluster.At(transfer.from)
          .Send(transfer.to, transfer.envelope, PayloadOf(transfer.sent), transfer.send.Done());
    } else {
      cluster.At(transfer.to)
          .Recv(transfer.from, transfer.envelope, LandingOf(transfer.received),
                transfer.recv.Done());
    }
    for (std::uint64_t events = random.Below(4); events > 0; --events) {
      cluster.loop().RunOne();
    }
  }
  cluster.Run();
}

std::vector<std::uint64_t> Seeds() {
  if (const char* seed = std::getenv("RANKLAB_SEED")) {
    return {std::strtoull(seed, nullptr, 10)};
  }
  std::vector<std::uint64_t> seeds(20);
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    seeds[i] = i + 1;
  }
  return seeds;
}

TEST(MessengerRandom, EveryMessageArrivesOnceWithItsOwnBytes) {
  for (const std::uint64_t seed : Seeds()) {
    SCOPED_TRACE("replay: RANKLAB_SEED=" + std::to_string(seed) +
                 " messenger_test --gtest_filter=MessengerRandom.*");
    Random random(seed);
    MessengerCluster cluster(kOptions);
    for (int rank = 0; rank < kEndpoints; ++rank) {
      cluster.At(Worker(rank));
    }
    std::deque<Transfer> transfers = RandomTransfers(random);
    PlayInRandomOrder(cluster, transfers, random);
    for (const Transfer& transfer : transfers) {
      ASSERT_TRUE(transfer.send.ok());
      ASSERT_TRUE(transfer.recv.ok());
      ASSERT_EQ(transfer.received, transfer.sent);
    }
  }
}

// One endpoint dies at a random moment: every operation still ends exactly once, and what says Ok
// has the right bytes.
TEST(MessengerRandom, EveryOperationEndsOnceWhenAPeerDies) {
  for (const std::uint64_t seed : Seeds()) {
    SCOPED_TRACE("replay: RANKLAB_SEED=" + std::to_string(seed) +
                 " messenger_test --gtest_filter=MessengerRandom.*");
    Random random(seed);
    MessengerCluster cluster(kOptions);
    for (int rank = 0; rank < kEndpoints; ++rank) {
      cluster.At(Worker(rank));
    }
    std::deque<Transfer> transfers = RandomTransfers(random);
    const std::uint64_t death = random.Below(kMessages);
    std::uint64_t count = 0;
    for (Transfer& transfer : transfers) {
      if (count++ == death) {
        cluster.Kill(Worker(0));
      }
      cluster.At(transfer.to)
          .Recv(transfer.from, transfer.envelope, LandingOf(transfer.received),
                transfer.recv.Done());
      cluster.At(transfer.from)
          .Send(transfer.to, transfer.envelope, PayloadOf(transfer.sent), transfer.send.Done());
      for (std::uint64_t events = random.Below(6); events > 0; --events) {
        cluster.loop().RunOne();
      }
    }
    cluster.Run();
    cluster.At(Worker(0)).Abort(absl::AbortedError("dead"));  // what the dead one still waits for
    cluster.Run();
    for (const Transfer& transfer : transfers) {
      const bool of_the_dead = transfer.from == Worker(0) || transfer.to == Worker(0);
      ASSERT_EQ(transfer.send.runs, 1);
      ASSERT_EQ(transfer.recv.runs, 1);
      ASSERT_TRUE(transfer.recv.ok() || of_the_dead) << *transfer.recv.status;
      if (transfer.recv.ok()) {
        ASSERT_EQ(transfer.received, transfer.sent);
      }
    }
  }
}

}  // namespace
}  // namespace ranklab::transport
