#include "sim/goal/goal.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/schedule/catalog.h"
#include "core/status.h"
#include "sim/goal/loggops.h"

namespace ranklab::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Mistake(std::string_view text) { return MessageOf(ReadGoal(text).status()); }

// A reduction to rank 0 over a binomial tree, 1024 bytes, as in LogGOPSim's first example.
constexpr std::string_view kBinomialReduce = R"(num_ranks 8
rank 0 {
  a: recv 1024b from 4 tag 0 cpu 0 nic 0
  b: recv 1024b from 2 tag 0
  c: recv 1024b from 1
}
rank 1 { // receives, then sends
  a: recv 1024b from 5
  b: recv 1024b from 3
  c: send 1024b to 0
  c requires a
  c requires b
}
rank 2 {
  a: recv 1024b from 6
  b: send 1024b to 0
  b requires a
}
rank 3 {
  a: recv 1024b from 7
  b: send 1024b to 1
  b requires a
}
/* leaves
   of the tree */
rank 4 {
  send 1024b to 0
}
rank 5 {
  send 1024b to 1
}
rank 6 {
  send 1024b to 2
}
rank 7 {
  send 1024b to 3
}
)";

TEST(Goal, ABinomialReduceEndsWhenLogGopsimSays) {
  const auto program = ReadGoal(kBinomialReduce);
  ASSERT_TRUE(program.ok()) << program.status();
  const auto ends = PlayGoal(*program, {});
  ASSERT_TRUE(ends.ok()) << ends.status();
  EXPECT_THAT(*ends, ElementsAre(34914, 24776, 13138, 13138, 1500, 1500, 1500, 1500));
}

TEST(Goal, AMessageTakesItsOverheadsLatencyAndBytes) {
  const auto ends = PlayGoal(*ReadGoal("num_ranks 2\nrank 0 {\nsend 1024b to 1\n}\n"
                                       "rank 1 {\nrecv 1024b from -1 tag -1\n}\n"),
                             {});
  ASSERT_TRUE(ends.ok());
  EXPECT_THAT(*ends, ElementsAre(1500, 11638));  // o; o + L + 1023 G + o
}

// The NIC is held for g + (n-1) G, another one is free; a computation holds its CPU only.
TEST(Goal, NicsAndCpusAreHeldOneByOne) {
  const std::string text =
      "num_ranks 2\nrank 0 {\na: send 101b to 1 nic 0\nb: send 101b to 1 nic 0 cpu 1\n"
      "c: calc 10000 cpu 0\nd: calc 7 cpu 2\nd irequires c\n}\n"
      "rank 1 {\nrecv 101b from 0\nrecv 101b from 0 cpu 1 nic 1\n}\n";
  const auto ends = PlayGoal(*ReadGoal(text), {});
  ASSERT_TRUE(ends.ok()) << ends.status();
  // a begins at 0, its NIC is free at 1000 + 600; b begins then. c begins at 1500 on a's CPU.
  EXPECT_THAT(*ends, ElementsAre(11500, 1600 + 1500 + 2500 + 600 + 1500));
}

TEST(Goal, WhatIsWrittenReadsBackAndTakesAsLong) {
  for (const char* name : {"ring", "rabenseifner", "double_binary_tree"}) {
    const auto schedule = *collectives::BuildNamed(name, collectives::Collective::kAllReduce,
                                                   {.group_size = 6, .chunks_per_rank = 2});
    const auto program = GoalOf(schedule, 10'000);
    ASSERT_TRUE(program.ok());
    const std::string text = WriteGoal(*program);
    const auto read = ReadGoal(text);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(WriteGoal(*read), text);
    EXPECT_EQ(*PlayGoal(*read, {}), *PlayGoal(*program, {})) << name;
  }
}

TEST(Goal, WrongTextIsRefusedWithItsLine) {
  EXPECT_THAT(Mistake(""), HasSubstr("ends after 0 of 0 ranks"));
  EXPECT_THAT(Mistake("num_ranks 99999999999\n"), HasSubstr("line 1: \"num_ranks N\""));
  EXPECT_THAT(Mistake("num_ranks 2\nrank 1 {\n}\n"), HasSubstr("line 2: \"rank 0 {\" is meant"));
  EXPECT_THAT(Mistake("num_ranks 1\nrank 0 {\n"), HasSubstr("ends after 1 of 1"));
  EXPECT_THAT(Mistake("num_ranks 1\nrank 0 {\n}\nrank 1 {\n"), HasSubstr("line 4: there are 1"));
  EXPECT_THAT(Mistake("num_ranks 1\nrank 0 {\nsend 8b to 1\n}\n"),
              HasSubstr("line 3: rank \"1\" is not one of 0 to 0"));
  EXPECT_THAT(Mistake("num_ranks 1\nrank 0 {\na requires b\n}\n"),
              HasSubstr("line 3: no op above is labelled \"a\""));
  EXPECT_THAT(Mistake("num_ranks 1\nrank 0 {\na: calc 1\na: calc 1\n}\n"),
              HasSubstr("line 4: label \"a\""));
  EXPECT_THAT(Mistake("num_ranks 1\nrank 0 {\ncalc -1\n}\n"), HasSubstr("\"-1\" are no nano"));
  EXPECT_THAT(Mistake("num_ranks 1\nrank 0 {\ncalc 1 cpu 64\n}\n"), HasSubstr("out of range"));
  EXPECT_THAT(Mistake("num_ranks 1\nrank 0 {\ncalc 1 cpu\n}\n"), HasSubstr("no option"));
  EXPECT_THAT(Mistake("num_ranks 1\nrank 0 {\nloop 8\n}\n"), HasSubstr("is none of: send"));
  EXPECT_THAT(Mistake("num_ranks 1 /* so"), HasSubstr("comment does not end"));
}

TEST(Goal, WhatWaitsForEverAndWhatNeedsARendezvousAreSaid) {
  const auto stuck = PlayGoal(
      *ReadGoal("num_ranks 1\nrank 0 {\na: recv 8b from 0\nb: send 8b to 0\nb requires a\n}\n"),
      {});
  EXPECT_THAT(MessageOf(stuck.status()), HasSubstr("rank 0: 2 of 2 ops wait for ever, op 0"));
  const auto large =
      PlayGoal(*ReadGoal("num_ranks 2\nrank 0 {\nsend 65536b to 1\n}\nrank 1 {\n}\n"), {});
  EXPECT_THAT(MessageOf(large.status()), HasSubstr("65536 bytes: above 65535"));
}

}  // namespace
}  // namespace ranklab::sim
