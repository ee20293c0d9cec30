#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/schedule/catalog.h"
#include "tests/cluster/program.h"

namespace ranklab::cluster_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr Seconds kLimit(60);

Finished Schedule(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "schedule");
  return RunToEnd(arguments, kLimit);
}

std::size_t CountOf(const std::string& text, const std::string& word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    ++count;
  }
  return count;
}

TEST(ScheduleCommand, ListsAndProvesTheWholeCatalog) {
  const Finished list = Schedule({"list"});
  EXPECT_EQ(list.exit_code, 0);
  for (const collectives::CatalogEntry& entry : collectives::Catalog()) {
    EXPECT_THAT(list.out, HasSubstr(std::string(entry.name)));
  }
  const Finished verify = Schedule({"verify", "--ranks", "5"});
  EXPECT_EQ(verify.exit_code, 0) << verify.err;
  EXPECT_EQ(CountOf(verify.out, ": proved ("), collectives::Catalog().size());
}

TEST(ScheduleCommand, ShowsTextAndGraphs) {
  const Finished text = Schedule({"show", "ring", "--collective", "all-gather", "--ranks", "2"});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.out, StartsWith("ring all-gather: 2 ranks, 2 input, 0 output, 0 scratch"));
  const Finished graph = Schedule({"show", "binomial", "--format", "dot"});
  EXPECT_EQ(graph.exit_code, 0);
  EXPECT_THAT(graph.out, StartsWith("digraph \"binomial all-reduce\" {"));
}

TEST(ScheduleCommand, ExportsWhatItImportsAndRefusesAFileThatLies) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/ring.xml";
  EXPECT_EQ(Schedule({"export", "ring", "--ranks", "4", "--out", path}).exit_code, 0);
  const Finished proved = Schedule({"verify", path});
  EXPECT_EQ(proved.exit_code, 0) << proved.out << proved.err;
  EXPECT_THAT(proved.out, HasSubstr("ring all-reduce over 4 ranks, 48 ops: proved"));
  EXPECT_EQ(Schedule({"import", path}).exit_code, 0);

  std::string text = ReadText(path);
  const std::string reduces = "type=\"rrc\"";
  text.replace(text.find(reduces), reduces.size(), "type=\"r\"");
  const Finished wrong_sum = Schedule({"verify", folder.Write("wrong_sum.xml", text)});
  EXPECT_EQ(wrong_sum.exit_code, 1);
  EXPECT_THAT(wrong_sum.out, HasSubstr("[gpu "));

  const std::string offset = "srcoff=\"0\"";
  text.replace(text.find(offset), offset.size(), "srcoff=\"9\"");
  const Finished outside = Schedule({"verify", folder.Write("outside.xml", text)});
  EXPECT_EQ(outside.exit_code, 2);
  EXPECT_THAT(outside.err, HasSubstr("threadblock"));
  EXPECT_THAT(outside.err, HasSubstr("outside of buffer i, which has 4"));
}

TEST(ScheduleCommand, NamesWhatThereIs) {
  const Finished unknown = Schedule({"show", "rign"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("one of: ring all-reduce, "));
}

TEST(ScheduleCommand, TimesAGroupByOneOfItsRanksAndSaysWhenItCannot) {
  const Finished alike = Schedule({"time", "ring", "--ranks", "16384", "--bytes", "16384KB"});
  EXPECT_EQ(alike.exit_code, 0) << alike.err;
  // 2 x 16383 steps of 500 ns and 1000 bytes at 50 GB/s.
  EXPECT_THAT(alike.out, HasSubstr("16384 ranks, 16384000 bytes: 0.01703832 s modelled"));
  EXPECT_THAT(alike.out, HasSubstr("played for 1 ranks"));
  const Finished late = Schedule({"time", "ring", "--ranks", "16", "--late", "3:1ms"});
  EXPECT_EQ(late.exit_code, 0) << late.err;
  EXPECT_THAT(late.out, HasSubstr("every rank was played"));
  const Finished wrong = Schedule({"time", "ring", "--slow-link", "0:1"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("--slow-link 0:1: FROM:TO:FACTOR is meant"));
}

}  // namespace
}  // namespace ranklab::cluster_test
