#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/schedule_time.h"
#include "collectives/msccl/export.h"
#include "collectives/msccl/import.h"
#include "collectives/msccl/xml.h"
#include "collectives/schedule/catalog.h"
#include "collectives/schedule/print.h"
#include "collectives/schedule/verify.h"
#include "core/status.h"

namespace ranklab::cli {
namespace {

using collectives::Catalog;
using collectives::CatalogEntry;
using collectives::Schedule;

// What a schedule is made from: an algorithm of the catalog, or an MSCCL file.
struct Flags {
  std::string what;
  std::string collective;
  std::string format = "text";
  std::string out;
  collectives::BuildOptions build{.group_size = 8};
  TimeFlags time;
};

bool IsFile(const std::string& what) { return what.ends_with(".xml"); }

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return NotFound("%s cannot be read", path);
  }
  return std::string{std::istreambuf_iterator<char>(file), {}};
}

absl::StatusOr<Schedule> ImportFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const auto program = collectives::ReadMscclXml(text);
  if (!program.ok()) {
    return Annotate(program.status(), path);
  }
  auto schedule = collectives::ScheduleOf(*program);
  return schedule.ok() ? std::move(schedule) : Annotate(schedule.status(), path);
}

// Without a collective the first of that name.
absl::StatusOr<const CatalogEntry*> FindEntry(const Flags& flags) {
  std::string known;
  for (const CatalogEntry& entry : Catalog()) {
    if (entry.name == flags.what &&
        (flags.collective.empty() || flags.collective == NameOf(entry.collective))) {
      return &entry;
    }
    known +=
        absl::StrFormat("%s%s %s", known.empty() ? "" : ", ", entry.name, NameOf(entry.collective));
  }
  return InvalidArgument("no algorithm is called \"%s%s%s\"; one of: %s, or a file ending in .xml",
                         flags.what, flags.collective.empty() ? "" : " ", flags.collective, known);
}

absl::StatusOr<Schedule> Make(const Flags& flags) {
  if (IsFile(flags.what)) {
    return ImportFile(flags.what);
  }
  ASSIGN_OR_RETURN(const CatalogEntry* entry, FindEntry(flags));
  return entry->build(flags.build);
}

int List() {
  std::printf("%-20s %-15s %-6s %-24s %-24s %-11s %s\n", "name", "collective", "pieces", "steps",
              "bytes a rank", "closed form", "source");
  for (const CatalogEntry& entry : Catalog()) {
    const std::string row =
        absl::StrFormat("%-20s %-15s %-6s %-24s %-24s %-11s %s\n", entry.name,
                        NameOf(entry.collective), entry.pipelines ? "yes" : "no", entry.steps,
                        entry.bytes_per_rank, entry.cost == nullptr ? "none" : "yes", entry.source);
    std::printf("%s", row.c_str());
  }
  return kSuccess;
}

int PrintText(const Schedule& schedule) {
  std::printf("%s", collectives::PrintSchedule(schedule).c_str());
  return kSuccess;
}

int Show(const Flags& flags) {
  const absl::StatusOr<Schedule> schedule = Make(flags);
  if (!schedule.ok()) {
    return Fail(schedule.status());
  }
  if (flags.format == "text") {
    return PrintText(*schedule);
  }
  const absl::StatusOr<std::string> graph = collectives::PrintGraph(*schedule);
  if (!graph.ok()) {
    return Fail(graph.status());
  }
  std::printf("%s", graph->c_str());
  return kSuccess;
}

// One line; false if it is refused.
bool VerifyOne(const Schedule& schedule) {
  std::size_t ops = 0;
  for (Rank rank = 0; rank < schedule.group_size; ++rank) {
    ops += schedule.ops_of(rank).size();
  }
  const auto begins = std::chrono::steady_clock::now();
  const absl::Status verdict = collectives::Verify(schedule);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begins;
  const std::string line = absl::StrFormat(
      "%s %s over %d ranks, %d ops: %s (%.3f s)\n", schedule.name, NameOf(schedule.collective),
      schedule.group_size, ops, verdict.ok() ? "proved" : MessageOf(verdict), taken.count());
  std::printf("%s", line.c_str());
  return verdict.ok();
}

int VerifyCatalog(const Flags& flags) {
  bool all = true;
  for (const CatalogEntry& entry : Catalog()) {
    const absl::StatusOr<Schedule> schedule = entry.build(flags.build);
    if (!schedule.ok()) {
      return Fail(schedule.status());
    }
    all &= VerifyOne(*schedule);
  }
  return all ? kSuccess : kFailedExpectation;
}

int Verify(const Flags& flags) {
  if (flags.what.empty()) {
    return VerifyCatalog(flags);
  }
  const absl::StatusOr<Schedule> schedule = Make(flags);
  if (!schedule.ok()) {
    return Fail(schedule.status());
  }
  return VerifyOne(*schedule) ? kSuccess : kFailedExpectation;
}

// use(schedule), once it is proved.
template <typename Use>
int WithProved(const absl::StatusOr<Schedule>& schedule, Use use) {
  if (!schedule.ok()) {
    return Fail(schedule.status());
  }
  if (const absl::Status verdict = collectives::Verify(*schedule); !verdict.ok()) {
    Fail(verdict);
    return kFailedExpectation;
  }
  return use(*schedule);
}

int WriteProgram(const Schedule& schedule, const std::string& out) {
  const auto program = collectives::ProgramOf(schedule);
  if (!program.ok()) {
    return Fail(program.status());
  }
  const std::string text = collectives::WriteMscclXml(*program);
  if (out.empty()) {
    std::printf("%s", text.c_str());
    return kSuccess;
  }
  std::ofstream file(out, std::ios::binary);
  file << text;
  file.close();
  return file ? kSuccess : Fail(NotFound("%s cannot be written", out));
}

int Import(const Flags& flags) { return WithProved(ImportFile(flags.what), PrintText); }

int Export(const Flags& flags) {
  return WithProved(Make(flags),
                    [&](const Schedule& schedule) { return WriteProgram(schedule, flags.out); });
}

int Time(const Flags& flags) {
  const absl::StatusOr<Schedule> schedule = Make(flags);
  return schedule.ok() ? TimeSchedule(*schedule, flags.time) : Fail(schedule.status());
}

void AddBuildFlags(CLI::App& command, Flags& flags) {
  command.add_option("--ranks", flags.build.group_size, "group size")->capture_default_str();
  command.add_option("--collective", flags.collective, "where several have the name");
  command.add_option("--chunks", flags.build.chunks_per_rank, "pieces, where it pipelines")
      ->capture_default_str();
  command.add_option("--root", flags.build.root, "of broadcast, reduce, gather and scatter")
      ->capture_default_str();
  command.add_option("--channels", flags.build.channels, "of multi_channel_ring")
      ->capture_default_str();
  command.add_option("--ranks-per-node", flags.build.ranks_per_node, "of hierarchical; 0: chosen")
      ->capture_default_str();
}

}  // namespace

void AddScheduleCommand(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("schedule", "collectives as data: list, prove, draw");
  command->require_subcommand(1);
  command->footer(
      "Examples:\n  ranklab schedule show rabenseifner --ranks 8\n"
      "  ranklab schedule verify program.xml\n"
      "  ranklab schedule export ring --ranks 8 --out ring8.xml\n"
      "  ranklab schedule time ring --ranks 131072 --bytes 1GB --bandwidth 50GB/s");
  CLI::App* list = command->add_subcommand("list", "every algorithm of the catalog");
  list->callback([&exit_code] { exit_code = List(); });

  CLI::App* show = command->add_subcommand("show", "the ops of every rank");
  show->add_option("algorithm", flags->what, "a name of the list, or an MSCCL file (.xml)")
      ->required();
  show->add_option("--format", flags->format, "text, or dot for Graphviz")
      ->check(CLI::IsMember({"text", "dot"}))
      ->capture_default_str();
  AddBuildFlags(*show, *flags);
  show->callback([flags, &exit_code] { exit_code = Show(*flags); });

  CLI::App* verify = command->add_subcommand("verify", "prove an algorithm, a file, or them all");
  verify->add_option("algorithm", flags->what, "a name of the list, or an MSCCL file (.xml)");
  AddBuildFlags(*verify, *flags);
  verify->callback([flags, &exit_code] { exit_code = Verify(*flags); });

  CLI::App* read = command->add_subcommand("import", "prove an MSCCL file and show its ops");
  read->add_option("file", flags->what, "an MSCCL program")->required();
  read->callback([flags, &exit_code] { exit_code = Import(*flags); });

  CLI::App* write = command->add_subcommand("export", "write an algorithm as an MSCCL program");
  write->add_option("algorithm", flags->what, "a name of the list")->required();
  write->add_option("--out", flags->out, "a file; else standard output");
  AddBuildFlags(*write, *flags);
  write->callback([flags, &exit_code] { exit_code = Export(*flags); });

  CLI::App* time = command->add_subcommand("time", "how long it takes on an ideal network");
  time->add_option("algorithm", flags->what, "a name of the list, or an MSCCL file (.xml)")
      ->required();
  AddBuildFlags(*time, *flags);
  AddTimeFlags(*time, flags->time);
  time->callback([flags, &exit_code] { exit_code = Time(*flags); });
}

}  // namespace ranklab::cli
