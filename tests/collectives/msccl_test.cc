#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/msccl/export.h"
#include "collectives/msccl/import.h"
#include "collectives/msccl/xml.h"
#include "collectives/schedule/catalog.h"
#include "collectives/schedule/print.h"
#include "collectives/schedule/verify.h"
#include "core/check.h"
#include "core/status.h"

namespace ranklab::collectives {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string ReadProgram(const std::string& name) {
  std::ifstream file("tests/collectives/programs/" + name + ".xml");
  RANKLAB_CHECK(file.is_open(), "%s", name);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Three GPUs in a line: sums travel up and the result down. In place; s, rrs, rrc, rcs, r.
const std::string kLine = ReadProgram("line");

// Two GPUs swap through scratch, out of place; cpy, re, nop, and rrcs to a third.
const std::string kSwap = ReadProgram("swap");

// A line that keeps what it sums on the way, then tells everybody; rrcs.
const std::string kKeeping = ReadProgram("keeping");

// In place, and says that its output is as large as its input: GPU 1's would end behind both.
const std::string kTooLong = R"(
<algo name="long" proto="Simple" nchannels="1" nchunksperloop="2" ngpus="2" coll="reducescatter"
    inplace="1" outofplace="0" minBytes="0" maxBytes="0">
  <gpu id="0" i_chunks="2" o_chunks="2" s_chunks="0">
    <tb id="0" send="1" recv="-1" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="1" dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1"
          hasdep="0"/>
    </tb>
  </gpu>
  <gpu id="1" i_chunks="2" o_chunks="2" s_chunks="0">
    <tb id="0" send="-1" recv="0" chan="0">
      <step s="0" type="rrc" srcbuf="i" srcoff="1" dstbuf="o" dstoff="1" cnt="1" depid="-1"
          deps="-1" hasdep="0"/>
    </tb>
  </gpu>
</algo>)";

absl::StatusOr<Schedule> Import(const std::string& text) {
  ASSIGN_OR_RETURN(const MscclProgram program, ReadMscclXml(text));
  return ScheduleOf(program);
}

// `text` with one occurrence of `from`, the `nth`, replaced.
std::string With(std::string text, const std::string& from, const std::string& to, int nth = 0) {
  std::size_t at = text.find(from);
  for (; nth > 0; --nth) {
    at = text.find(from, at + 1);
  }
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string Refusal(const std::string& text) {
  const absl::StatusOr<Schedule> schedule = Import(text);
  const absl::Status status = schedule.ok() ? Verify(*schedule) : schedule.status();
  EXPECT_FALSE(status.ok()) << text;
  return MessageOf(status);
}

TEST(Msccl, ProgramsOfAllNineStepTypesAreProved) {
  for (const std::string& text : {kLine, kSwap, kKeeping}) {
    const absl::StatusOr<Schedule> schedule = Import(text);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    EXPECT_EQ(Verify(*schedule), absl::OkStatus()) << schedule->name;
  }
}

TEST(Msccl, ReadsWhatItWrites) {
  for (const std::string& text : {kLine, kSwap, kKeeping}) {
    const auto program = ReadMscclXml(text);
    ASSERT_TRUE(program.ok()) << program.status();
    const std::string written = WriteMscclXml(*program);
    const auto again = ReadMscclXml(written);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(WriteMscclXml(*again), written);
    EXPECT_EQ(again->in_place, program->in_place);
    EXPECT_EQ(again->max_bytes, program->max_bytes);
    EXPECT_EQ(again->gpus.size(), program->gpus.size());
  }
}

// rrs stores nothing: it reduces in a chunk that the program does not have.
TEST(Msccl, StepsBecomeOps) {
  const Schedule schedule = *Import(kLine);
  std::string ops;
  for (const Op& op : schedule.ops_of(1)) {
    ops += PrintOp(op) + "\n";
  }
  EXPECT_EQ(ops,
            "copy chunk 1 from chunk 0 in channel 4\n"
            "recv-reduce chunk 1 from rank 0\n"
            "send chunk 1 to rank 2 in channel 2\n"
            "recv chunk 0 from rank 2 in channel 3\n"
            "send chunk 0 to rank 0 in channel 1\n");
  EXPECT_EQ(schedule.origin_of(1, 4), "gpu 1, threadblock 1, step 0");
}

// Every algorithm that MSCCL has a word for: written, read, proved, with as many messages.
TEST(Msccl, EveryAlgorithmSurvivesExportAndImport) {
  int exported = 0;
  for (const CatalogEntry& entry : Catalog()) {
    for (const int ranks : {1, 2, 3, 4, 7, 8}) {
      for (const int chunks_per_rank : {1, 2}) {
        SCOPED_TRACE(absl::StrFormat("%s %s, %d ranks, %d chunks a rank", entry.name,
                                     NameOf(entry.collective), ranks, chunks_per_rank));
        const Schedule schedule =
            *entry.build({.group_size = ranks, .chunks_per_rank = chunks_per_rank});
        const auto program = ProgramOf(schedule);
        if (entry.collective == Collective::kBarrier ||
            entry.collective == Collective::kAllToAllV) {
          EXPECT_TRUE(absl::IsUnimplemented(program.status()));
          continue;
        }
        ASSERT_TRUE(program.ok()) << program.status();
        const auto imported = Import(WriteMscclXml(*program));
        ASSERT_TRUE(imported.ok()) << imported.status();
        EXPECT_EQ(Verify(*imported), absl::OkStatus());
        EXPECT_EQ(imported->collective, schedule.collective);
        EXPECT_EQ(imported->input_chunks, schedule.input_chunks);
        EXPECT_EQ(imported->output_chunks, schedule.output_chunks);
        for (Rank rank = 0; rank < ranks; ++rank) {
          EXPECT_EQ(imported->ops_of(rank).size(), schedule.ops_of(rank).size());
        }
        ++exported;
      }
    }
  }
  EXPECT_GE(exported, 200);
}

struct Lie {
  std::string name;
  std::string text;
  std::string place;
  std::string reason;
};

class MscclLies : public ::testing::TestWithParam<Lie> {};

TEST_P(MscclLies, AreRefusedWithTheirPlace) {
  EXPECT_THAT(Refusal(GetParam().text),
              AllOf(HasSubstr(GetParam().place), HasSubstr(GetParam().reason)));
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, MscclLies,
    ::testing::Values(
        Lie{"NoXml", "<algo", "byte", "not XML"},
        Lie{"AnotherRoot", "<system/>", "an MSCCL program", "<system>"},
        Lie{"UnknownCollective", With(kLine, "allreduce", "custom"), "custom",
            "nothing that could"},
        Lie{"UnknownType", With(kLine, "\"rrs\"", "\"rss\""), "gpu 1, threadblock 0, step 0",
            "one of s, r, cpy, re, rcs, rrs, rrc, rrcs, nop"},
        Lie{"NoNumber", With(kLine, "srcoff=\"0\"", "srcoff=\"x\""), "gpu 0, threadblock 0, step 0",
            "srcoff is \"x\""},
        Lie{"MissingAttribute", With(kLine, " cnt=\"1\"", "", 1), "gpu 0, threadblock 0, step 1",
            "cnt"},
        Lie{"StepOutOfOrder", With(kLine, " s=\"1\"", " s=\"2\""), "gpu 0, threadblock 0, step 1",
            "out of order"},
        Lie{"TooFewGpus", With(kLine, "ngpus=\"3\"", "ngpus=\"4\""), "ngpus", "there are 3"},
        Lie{"OutOfBounds", With(kLine, "srcoff=\"0\"", "srcoff=\"1\""),
            "gpu 0, threadblock 0, step 0", "outside of buffer i, which has 1"},
        Lie{"ReduceScatterOutOfBoundsInPlace", kTooLong, "gpu 1, threadblock 0, step 0",
            "outside of buffer o, which has 1"},
        Lie{"ScatterOutOfBoundsInPlace", With(kTooLong, "reducescatter", "scatter"),
            "gpu 1, threadblock 0, step 0", "outside of buffer o, which has 1"},
        Lie{"NoPeer", With(kLine, "send=\"1\"", "send=\"-1\""), "gpu 0, threadblock 0, step 0",
            "send is -1"},
        Lie{"SelfPeer", With(kLine, "send=\"1\"", "send=\"0\""), "gpu 0, threadblock 0, step 0",
            "send is 0"},
        Lie{"NoChannel", With(kLine, "chan=\"0\"", "chan=\"1\"", 1), "gpu 1, threadblock 0, step 0",
            "nchannels is 1"},
        Lie{"DependsOnNothing", With(kLine, "depid=\"0\" deps=\"0\"", "depid=\"0\" deps=\"3\""),
            "gpu 1, threadblock 1, step 0", "threadblock 0, step 3, which is not there"},
        Lie{"DependencyUnsaid", With(kLine, "hasdep=\"1\"", "hasdep=\"0\""),
            "gpu 1, threadblock 1, step 0", "whose hasdep is 0"},
        Lie{"WrongSender", With(kLine, "recv=\"0\"", "recv=\"2\""), "gpu 1, threadblock 1, step 0",
            "already has the connection"},
        Lie{"LostMessage", With(kKeeping, "\"r\"", "\"nop\""), "gpu 2, threadblock 0, step 1",
            "never receives"},
        Lie{"Deadlock",
            With(With(kLine, "\"s\" srcbuf", "\"r\" srcbuf"), "\"r\" srcbuf", "\"s\" srcbuf", 1),
            "gpu 0, threadblock 0, step 0", "waits for ever for a message of gpu 1"},
        Lie{"Race", With(kSwap, "depid=\"0\" deps=\"1\"", "depid=\"-1\" deps=\"-1\""),
            "gpu 0, threadblock 0, step 1", "may overlap with gpu 0, threadblock 1, step 2"},
        Lie{"WrongSum", With(kKeeping, "\"rrcs\"", "\"rcs\""), "gpu 0, threadblock 0, step 1",
            "promises position 0 of all ranks"}),
    [](const auto& info) { return info.param.name; });

TEST(Msccl, AMessageOfAnotherSizeIsRefused) {
  std::string text = kLine;
  for (int i = 0; i < 3; ++i) {
    text = With(text, "i_chunks=\"1\"", "i_chunks=\"2\"");
  }
  EXPECT_THAT(
      Refusal(With(text, "cnt=\"1\"", "cnt=\"2\"")),
      HasSubstr("gpu 1, threadblock 0, step 0: receives 1 chunks, but gpu 0, threadblock 0, "
                "step 0 sends 2"));
}

}  // namespace
}  // namespace ranklab::collectives
