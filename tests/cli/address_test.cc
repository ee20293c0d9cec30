#include "cli/address.h"

#include <gtest/gtest.h>

namespace ranklab::cli {
namespace {

TEST(AdvertisedHost, IsWhatTheCommandLineSays) {
  EXPECT_EQ(AdvertisedHost("node7", "0.0.0.0:7070", "coordinator:7070", "c0ffee"), "node7");
  EXPECT_EQ(AdvertisedHost("", "10.0.0.7:7070", "coordinator:7070", "c0ffee"), "10.0.0.7");
}

TEST(AdvertisedHost, OfAWildcardIsTheHostsNameForACoordinatorElsewhere) {
  EXPECT_EQ(AdvertisedHost("", "0.0.0.0:7070", "coordinator:7070", "c0ffee"), "c0ffee");
  EXPECT_EQ(AdvertisedHost("", "[::]:7070", "10.0.0.1:7070", "c0ffee"), "c0ffee");
}

TEST(AdvertisedHost, OfAWildcardIsLoopbackForACoordinatorThere) {
  for (const char* coordinator :
       {"127.0.0.1:7070", "127.0.1.1:7070", "localhost:1", "[::1]:7070"}) {
    EXPECT_EQ(AdvertisedHost("", "0.0.0.0:0", coordinator, "c0ffee"), "127.0.0.1") << coordinator;
  }
}

}  // namespace
}  // namespace ranklab::cli
