#include "experiment/quantity.h"

#include <gtest/gtest.h>

namespace ranklab::experiment {
namespace {

TEST(Quantity, DurationsNeedAUnit) {
  EXPECT_EQ(ParseDuration("500ms"), Nanos(500'000'000));
  EXPECT_EQ(ParseDuration("2.5us"), Nanos(2'500));
  EXPECT_EQ(ParseDuration("2 s"), Nanos(2'000'000'000));
  EXPECT_EQ(ParseDuration("4min"), Nanos(240'000'000'000));
  EXPECT_EQ(ParseDuration("0s"), Nanos(0));
  for (const char* text :
       {"", "5", "ms", "-1s", "5 MS", "1e3s", "5ms ", "1..2s", "1000000000min"}) {
    EXPECT_FALSE(ParseDuration(text).has_value()) << text;
  }
}

TEST(Quantity, SizesAreWholeBytes) {
  EXPECT_EQ(ParseSize("25MiB"), 25 << 20);
  EXPECT_EQ(ParseSize("1MB"), 1'000'000);
  EXPECT_EQ(ParseSize("0.5KiB"), 512);
  EXPECT_EQ(ParseSize("7B"), 7);
  for (const char* text : {"", "25", "25mb", "-1B", "0.3B", "99999999999GiB", "nanMB", "infMB"}) {
    EXPECT_FALSE(ParseSize(text).has_value()) << text;
  }
}

TEST(Quantity, RatesInBytesOrBits) {
  EXPECT_EQ(ParseBandwidth("10Gbit/s")->bytes_per_second, 1.25e9);
  EXPECT_EQ(ParseBandwidth("10Gbps")->bytes_per_second, 1.25e9);
  EXPECT_EQ(ParseBandwidth("2MiB/s")->bytes_per_second, 2.0 * 1024 * 1024);
  for (const char* text : {"", "10", "10GB", "0GB/s", "-1GB/s", "/s"}) {
    EXPECT_FALSE(ParseBandwidth(text).has_value()) << text;
  }
}

TEST(Quantity, NumbersAreNothingElse) {
  EXPECT_EQ(ParseInteger("-12"), -12);
  EXPECT_FALSE(ParseInteger("12a").has_value());
  EXPECT_FALSE(ParseInteger("99999999999999999999").has_value());
  EXPECT_FALSE(ParseInteger("1.0").has_value());
  EXPECT_EQ(ParseNumber("1e-3"), 1e-3);
  EXPECT_FALSE(ParseNumber("nan").has_value());
  EXPECT_FALSE(ParseNumber("1e999").has_value());
  EXPECT_FALSE(ParseNumber(" 1").has_value());
}

}  // namespace
}  // namespace ranklab::experiment
