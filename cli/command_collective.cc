#include <algorithm>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/collective/contestant.h"
#include "cli/collective/rank_process.h"
#include "cli/collective/sweep.h"
#include "cli/collective/table.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "core/status.h"

namespace ranklab::cli {
namespace {

constexpr int kRepeatsAgainstRivals = 5;

struct Flags {
  SweepOptions sweep;
  double timeout_seconds = 30;
  int spin_microseconds = 0;
  int repeats = 0;  // 0: chosen
  std::string transport = "tcp";
  bool checksums = false;
  bool rivals = false;
  bool json = false;
};

// The middle one by time; an element that was wrong once is wrong.
Measurement MedianOf(std::vector<Measurement> repeats) {
  std::sort(repeats.begin(), repeats.end(),
            [](const Measurement& a, const Measurement& b) { return a.seconds < b.seconds; });
  const std::size_t half = repeats.size() / 2;
  Measurement median = repeats[half];
  if (repeats.size() % 2 == 0) {
    median.seconds = (median.seconds + repeats[half - 1].seconds) / 2;
  }
  for (const Measurement& one : repeats) {
    median.wrong = std::max(median.wrong, one.wrong);
  }
  return median;
}

class CollectiveTable {
 public:
  explicit CollectiveTable(const Flags& flags)
      : flags_(flags), way_(flags.transport == "shm" ? Way::kSharedMemory : Way::kTcp) {}

  absl::Status Run(const std::vector<Trial>& trials) {
    RETURN_IF_ERROR(Start());
    Print(PrintHead(flags_.sweep, way_, flags_.checksums));
    for (const Trial& trial : trials) {
      if (rows_.empty() || rows_.back().trial.algorithm != trial.algorithm) {
        Print(PrintAlgorithm(trial));
      }
      ASSIGN_OR_RETURN(Row row, MeasureRow(trial));
      Print(PrintRow(row, flags_.sweep.ranks));
      rows_.push_back(std::move(row));
    }
    Print(PrintTail(rows_, flags_.sweep));
    if (flags_.json) {
      std::printf("%s", PrintJson(rows_, flags_.sweep, way_, flags_.checksums).c_str());
    }
    return absl::OkStatus();
  }

  std::int64_t wrong() const { return WrongIn(rows_); }

 private:
  // Rivals first: one that is missing shows before anything is measured.
  absl::Status Start() {
    const ContestantOptions options{.ranks = flags_.sweep.ranks,
                                    .way = way_,
                                    .checksums = flags_.checksums,
                                    .timeout_seconds = flags_.timeout_seconds,
                                    .spin_microseconds = flags_.spin_microseconds};
    if (flags_.rivals) {
      RETURN_IF_ERROR(AddRival(StartOpenMpi(options)));
      if (way_ == Way::kTcp) {  // gloo has no other
        RETURN_IF_ERROR(AddRival(StartGloo(options)));
      }
    }
    ASSIGN_OR_RETURN(ranklab_, StartRanklab(options));
    return absl::OkStatus();
  }

  absl::Status AddRival(absl::StatusOr<std::unique_ptr<Contestant>> rival) {
    RETURN_IF_ERROR(rival.status());
    rivals_.push_back(*std::move(rival));
    return absl::OkStatus();
  }

  absl::StatusOr<Row> MeasureRow(Trial trial) {
    Row row{.trial = trial};
    for (const auto& rival : rivals_) {
      row.rivals.push_back({.name = rival->name(), .why_not = rival->WhyNot(trial)});
    }
    for (std::size_t placement = 0; placement < row.measured.size(); ++placement) {
      trial.in_place = placement == 1;
      RETURN_IF_ERROR(MeasurePlacement(trial, placement, row));
    }
    return row;
  }

  // All contestants in turn, as often as asked for.
  absl::Status MeasurePlacement(const Trial& trial, std::size_t placement, Row& row) {
    std::vector<Contestant*> contestants = {ranklab_.get()};
    for (const auto& rival : rivals_) {
      contestants.push_back(rival.get());
    }
    std::vector<std::vector<Measurement>> measured(contestants.size());
    for (int repeat = 0; repeat < flags_.sweep.repeats; ++repeat) {
      for (std::size_t i = 0; i < contestants.size(); ++i) {
        if (contestants[i]->WhyNot(trial).empty()) {
          ASSIGN_OR_RETURN(const Measurement one, contestants[i]->Measure(trial));
          measured[i].push_back(one);
        }
      }
    }
    for (std::size_t i = 0; i < contestants.size(); ++i) {
      Placements& placements = i == 0 ? row.measured : row.rivals[i - 1].measured;
      if (!measured[i].empty()) {
        placements[placement] = MedianOf(std::move(measured[i]));
      }
    }
    return absl::OkStatus();
  }

  void Print(const std::string& text) const {
    if (!flags_.json) {
      std::printf("%s", text.c_str());
      std::fflush(stdout);  // a row is there when it is measured
    }
  }

  const Flags& flags_;
  const Way way_;
  std::unique_ptr<Contestant> ranklab_;
  std::vector<std::unique_ptr<Contestant>> rivals_;
  std::vector<Row> rows_;
};

int RunCollective(Flags flags) {
  // A rank that is gone is noticed by what it does not answer.
  std::signal(SIGPIPE, SIG_IGN);
  flags.sweep.repeats =
      flags.repeats > 0 ? flags.repeats : (flags.rivals ? kRepeatsAgainstRivals : 1);
  const absl::StatusOr<std::vector<Trial>> trials = TrialsOf(flags.sweep);
  if (!trials.ok()) {
    return Fail(trials.status());
  }
  CollectiveTable table(flags);
  if (const absl::Status ended = table.Run(*trials); !ended.ok()) {
    return Fail(ended);
  }
  if (table.wrong() > 0) {
    std::fprintf(stderr, "ranklab: %lld elements came out wrong\n",
                 static_cast<long long>(table.wrong()));
    return kFailedExpectation;
  }
  return kSuccess;
}

// "8", "1K", "64M": powers of 1024, as nccl-tests reads them.
CLI::Option* AddSize(CLI::App& command, const char* name, Bytes& size, const char* words) {
  return command.add_option(name, size, words)
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(Bytes{0}, Bytes{1} << 40));
}

void AddSweepFlags(CLI::App& command, SweepOptions& sweep) {
  command.add_option("--ranks", sweep.ranks, "processes on this machine")->capture_default_str();
  command
      .add_option("--collective", sweep.collective,
                  "all_reduce, all_gather, reduce_scatter, broadcast, reduce or alltoall")
      ->capture_default_str();
  command.add_option("--algorithm", sweep.algorithm,
                     "a name of `ranklab schedule list`, or all; else its first");
  AddSize(command, "-b,--minbytes", sweep.min_bytes, "smallest size (32M)");
  AddSize(command, "-e,--maxbytes", sweep.max_bytes, "largest size (32M)");
  AddSize(command, "-i,--stepbytes", sweep.step_bytes, "added from size to size (1M)");
  command.add_option("-f,--stepfactor", sweep.step_factor, "multiplied from size to size")
      ->check(CLI::Range(2, 1 << 20));
  command.add_option("-n,--iters", sweep.iterations, "timed iterations")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command.add_option("-w,--warmup_iters", sweep.warmup, "iterations before them")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  command.add_option("-c,--check", sweep.check, "0: results are not verified")
      ->capture_default_str();
  command.add_option("-o,--op", sweep.op, "sum, max, min or all")->capture_default_str();
  command.add_option("-d,--datatype", sweep.dtype, "float, half, bfloat16, int32 or all")
      ->capture_default_str();
  command.add_option("-r,--root", sweep.root, "of broadcast and reduce")->capture_default_str();
  command
      .add_option("--chunks", sweep.chunks,
                  "pieces of a rank's block that are on their way at once; 0: by size")
      ->check(CLI::Range(0, 1 << 16))
      ->capture_default_str();
}

}  // namespace

void AddCollectiveCommand(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app.add_subcommand("collective", "time collectives on this machine, verified");
  command->footer(
      "Examples:\n"
      "  ranklab collective --ranks 4 -b 1K -e 64M -f 4\n"
      "  ranklab collective --ranks 4 -b 1M -e 1M --algorithm all\n"
      "  ranklab collective --ranks 2 -b 1M -e 64M -f 4 -n 5 --rivals\n"
      "Exit code: 0 all right, 1 wrong elements, 2 a mistake in the flags, 3 a lost rank.");
  AddSweepFlags(*command, flags->sweep);
  command
      ->add_option("--transport", flags->transport,
                   "tcp, or shm: through memory that the ranks share")
      ->check(CLI::IsMember({"tcp", "shm"}))
      ->capture_default_str();
  command->add_option("--timeout", flags->timeout_seconds, "seconds that one collective may take")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--repeats", flags->repeats, "of each row, the median counts (1; rivals: 5)")
      ->check(CLI::Range(1, 10'000));
  command->add_flag("--checksums", flags->checksums, "hash bodies as between hosts");
  command
      ->add_option("--spin", flags->spin_microseconds,
                   "microseconds that a rank without work looks for some before it sleeps")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  command->add_flag("--rivals", flags->rivals, "Open MPI and gloo (tcp only) in turn with ranklab");
  command->add_flag("--json", flags->json, "print JSON in place of the table");
  command->callback([flags, &exit_code] { exit_code = RunCollective(*flags); });
}

// What RunCollective starts.
void AddCollectiveRankCommand(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<RankProcessOptions>();
  CLI::App* command = app.add_subcommand("collective-rank")->group("");
  command->add_option("--rank", options->rank)->required();
  command->add_option("--timeout", options->timeout_seconds)->required();
  command->add_option("--spin", options->spin_microseconds);
  command->add_flag("--shared-memory", options->shared_memory);
  command->add_flag("--checksums", options->checksums);
  command->callback([options, &exit_code] { exit_code = RunRankProcess(*options); });
}

}  // namespace ranklab::cli
