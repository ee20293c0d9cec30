#include <cstdio>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <absl/strings/str_format.h>

#include "cli/exit_code.h"
#include "cli/model_commands.h"
#include "sim/reliability/reliability.h"
#include "sim/validation/published_table.h"

namespace ranklab::cli {
namespace {

constexpr double kHour = 3600;

struct Flags {
  double nodes = 2048;
  double rate = 419.0 / (54 * 2048);  // Llama 3 405B's
  double write = 60;
  double restart = 600;
  bool causes = false;
};

void PrintText(const std::string& text) { std::fputs(text.c_str(), stdout); }

// Requires more than an interval's failures to be few: beyond that a run would hardly end.
std::string Played(const sim::Checkpointing& checkpointing) {
  constexpr int kRuns = 400;
  constexpr int kIntervals = 100;
  if (checkpointing.interval + checkpointing.write > 5 * checkpointing.between_failures) {
    return "-";
  }
  const sim::Estimate played = sim::PlayFailures(checkpointing, 1, kRuns, kIntervals);
  return absl::StrFormat("%.2f +- %.2f", 100 * played.mean, 100 * played.half_width);
}

void PrintIntervals(const sim::Checkpointing& at_daly) {
  PrintText(absl::StrFormat("\n%14s %12s %16s %16s\n", "interval s", "effective %", "played %",
                            "first order %"));
  for (const double factor : {0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 10.0}) {
    sim::Checkpointing checkpointing = at_daly;
    checkpointing.interval *= factor;
    PrintText(absl::StrFormat("%14.0f %12.2f %16s %16.2f%s\n", checkpointing.interval,
                              100 * sim::EffectiveTime(checkpointing), Played(checkpointing),
                              100 * sim::EffectiveTimeFirstOrder(checkpointing),
                              factor == 1.0 ? "  <- Daly" : ""));
  }
}

void PrintSizes(const Flags& flags) {
  PrintText(absl::StrFormat("\n%14s %14s %14s %12s %18s\n", "nodes", "MTBF h", "Daly s",
                            "effective %", "kept work, nodes"));
  for (double nodes = flags.nodes / 16; nodes <= flags.nodes * 16; nodes *= 4) {
    const double mtbf = sim::MeanTimeBetweenFailures(nodes, flags.rate);
    const double interval = sim::DalyInterval(flags.write, mtbf);
    const double share = sim::EffectiveTime({.between_failures = mtbf,
                                             .write = flags.write,
                                             .restart = flags.restart,
                                             .interval = interval});
    PrintText(absl::StrFormat("%14.0f %14.2f %14.0f %12.2f %18.0f\n", nodes, mtbf / kHour, interval,
                              100 * share, share * nodes));
  }
}

void PrintCauses(double mtbf) {
  const sim::Table table = sim::PublishedTable(sim::Published::kFailures);
  double total = 0;
  for (int row = 0; row < table.rows(); ++row) {
    total += table.Number(row, "count");
  }
  PrintText(absl::StrFormat("\n%-32s %8s %8s %16s\n", "cause (Llama 3 405B, 54 days)", "count",
                            "share", "here, every h"));
  for (int row = 0; row < table.rows(); ++row) {
    const double count = table.Number(row, "count");
    PrintText(absl::StrFormat("%-32s %8.0f %7.1f%% %16.1f\n", table.Text(row, "cause"), count,
                              100 * count / total, mtbf / kHour * total / count));
  }
}

int Failures(const Flags& flags) {
  const double mtbf = sim::MeanTimeBetweenFailures(flags.nodes, flags.rate);
  const double young = sim::YoungInterval(flags.write, mtbf);
  const double daly = sim::DalyInterval(flags.write, mtbf);
  PrintText(absl::StrFormat(
      "modelled: %.0f nodes, %.3g failures a node-day: one every %.2f h; checkpoint %.0f s, "
      "restart "
      "%.0f s\ninterval by Young %.0f s, by Daly %.0f s\n",
      flags.nodes, flags.rate, mtbf / kHour, flags.write, flags.restart, young, daly));
  if (daly <= 0 || daly > 5 * mtbf) {
    PrintText("a checkpoint takes longer than the time between failures: nothing would be kept\n");
    return kFailedExpectation;
  }
  PrintIntervals(
      {.between_failures = mtbf, .write = flags.write, .restart = flags.restart, .interval = daly});
  PrintSizes(flags);
  if (flags.causes) {
    PrintCauses(mtbf);
  }
  return kSuccess;
}

}  // namespace

void AddFailuresCommand(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app.add_subcommand("failures", "what failures and checkpoints leave of a cluster's time");
  command->add_option("--nodes", flags->nodes, "of the job")
      ->check(CLI::Range(1.0, 1e6))
      ->capture_default_str();
  command->add_option("--rate", flags->rate, "failures a node-day; by default Llama 3 405B's")
      ->check(CLI::Range(1e-9, 1e3));
  command->add_option("--checkpoint", flags->write, "seconds to write one")
      ->check(CLI::Range(1e-3, 1e6))
      ->capture_default_str();
  command->add_option("--restart", flags->restart, "seconds from a failure until work goes on")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  command->add_flag("--causes", flags->causes, "the causes of Llama 3 405B's interruptions");
  command->footer("Example:\n  ranklab failures --nodes 2048 --checkpoint 60 --causes");
  command->callback([flags, &exit_code] { exit_code = Failures(*flags); });
}

}  // namespace ranklab::cli
