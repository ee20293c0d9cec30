#include <cstdio>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <absl/strings/str_format.h>

#include "cli/exit_code.h"
#include "cli/model_commands.h"
#include "core/status.h"
#include "sim/step/bill.h"
#include "sim/step/plan_search.h"

namespace ranklab::cli {
namespace {

constexpr double kDefaultTokens = 4.0 * 1024 * 1024;

struct Flags {
  std::string model;
  std::string gpu = "a100";
  std::string fabric = "dgx_a100_hdr";
  int gpus = 8;
  int batch = 0;  // sequences; 0: 4 Mi tokens
  bool unfused = false;
  bool exhaustive = false;
};

void PrintText(const std::string& text) { std::fputs(text.c_str(), stdout); }

absl::StatusOr<sim::PlanRequest> RequestOf(const Flags& flags) {
  sim::PlanRequest request{
      .devices = flags.gpus, .flash_attention = !flags.unfused, .prune = !flags.exhaustive};
  ASSIGN_OR_RETURN(request.model, sim::FindTransformer(flags.model));
  ASSIGN_OR_RETURN(request.machine, sim::FindMachine(flags.gpu, flags.fabric));
  request.global_batch =
      flags.batch > 0 ? flags.batch : static_cast<int>(kDefaultTokens / request.model.sequence);
  return request;
}

void PrintHeading(const sim::PlanRequest& request, const sim::PlanRanking& ranking) {
  PrintText(absl::StrFormat(
      "%s (%.1f billion parameters), %d x %s, %s; batch %d sequences of %d tokens, bf16, %s\n"
      "modelled: nothing ran; nodes and devices are taken from data sheets, efficiencies fitted on "
      "A100 (`ranklab validate`)%s\n",
      request.model.name, sim::ParametersOf(request.model) / 1e9, request.devices,
      request.machine.accelerator.words, request.machine.fabric.name, request.global_batch,
      request.model.sequence, request.flash_attention ? "flash attention" : "unfused attention",
      request.machine.accelerator.name == "a100" ? "" : "; this device was not fitted"));
  PrintText(absl::StrFormat("%d legal plans: %d do not fit, %d played, %d bounded away%s\n\n",
                            ranking.legal, ranking.too_large, ranking.played,
                            ranking.legal - ranking.too_large - ranking.played,
                            request.prune ? " (slower than the tenth, by their lower bound)" : ""));
}

sim::Bill BillFor(const sim::PlanRequest& request, const sim::Candidate& candidate) {
  const double busy = candidate.time.compute + candidate.time.update;
  return sim::BillOf(request.machine.accelerator, {}, request.devices, busy,
                     candidate.time.seconds - busy);
}

void PrintBest(const sim::PlanRequest& request, const sim::PlanRanking& ranking) {
  PrintText(absl::StrFormat("%2s %8s %6s %6s %7s %9s %7s %8s %9s  %s\n", "", "step s", "MFU %",
                            "HFU %", "GB", "exposed s", "bubble", "kWh", "$ middle", "plan"));
  int place = 0;
  for (const sim::Candidate& candidate : ranking.best) {
    const sim::StepTime& time = candidate.time;
    const sim::Bill bill = BillFor(request, candidate);
    const std::string dollars =
        bill.dollars[1] > 0 ? absl::StrFormat("%.2f", bill.dollars[1]) : "no price";
    PrintText(absl::StrFormat(
        "%2d %8.3f %6.1f %6.1f %7.1f %9.3f %6.1f%% %8.2f %9s  %s\n", ++place, time.seconds,
        100 * time.mfu, 100 * time.hfu, candidate.memory.total() / 1e9,
        time.tensor + time.pipeline + time.gradients, 100 * time.bubble / time.seconds, bill.kwh,
        dollars, sim::DescribePlan(candidate.plan)));
  }
}

void PrintReasons(const sim::PlanRequest& request, const sim::PlanRanking& ranking) {
  if (ranking.best.size() > 1) {
    PrintText("\nrunner-up: " + sim::WhyItLost(ranking.best[0], ranking.best[1]) + "\n");
  }
  for (const std::string& sentence : sim::ExplainBest(request, ranking)) {
    PrintText(sentence + "\n");
  }
  const sim::Bill bill = BillFor(request, ranking.best.front());
  PrintText(absl::StrFormat(
      "assumed, not metered: 85 %% of %.0f W busy, 60 %% waiting, 100 W of host a device, PUE 1.2, "
      "475 g/kWh: %.2f kWh and %.2f kg CO2 a step",
      request.machine.accelerator.watts, bill.kwh, bill.co2_kg));
  PrintText(bill.dollars[1] > 0
                ? absl::StrFormat("; $ %.2f, %.2f or %.2f a step at a low, middle, high price\n",
                                  bill.dollars[0], bill.dollars[1], bill.dollars[2])
                : std::string("; no price is assumed for this device\n"));
}

int Plan(const Flags& flags) {
  const absl::StatusOr<sim::PlanRequest> request = RequestOf(flags);
  if (!request.ok()) {
    return Fail(request.status());
  }
  const absl::StatusOr<sim::PlanRanking> ranking = sim::SearchPlans(*request);
  if (!ranking.ok()) {
    return Fail(ranking.status());
  }
  PrintHeading(*request, *ranking);
  if (ranking->best.empty()) {
    PrintText(absl::StrFormat("no plan fits into %.0f GB; the smallest: %s\n",
                              request->machine.accelerator.memory_bytes / 1e9,
                              ranking->smallest_misfit));
    return kFailedExpectation;
  }
  PrintBest(*request, *ranking);
  PrintReasons(*request, *ranking);
  return kSuccess;
}

}  // namespace

void AddPlanCommand(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app.add_subcommand("plan", "the fastest ways to spread a transformer over a cluster");
  command->add_option("--model", flags->model, "gpt3-175b, llama-70b, ...")->required();
  command->add_option("--gpus", flags->gpus, "devices")
      ->check(CLI::Range(1, 131072))
      ->capture_default_str();
  command->add_option("--gpu", flags->gpu, "v100, a100, h100, h200, b200, l40s, rtx4090")
      ->capture_default_str();
  command->add_option("--fabric", flags->fabric, "dgx_a100_hdr, dgx_h100_ndr, ...")
      ->capture_default_str();
  command->add_option("--batch", flags->batch, "sequences a step; by default 4 Mi tokens")
      ->check(CLI::Range(1, 1 << 20));
  command->add_flag("--unfused-attention", flags->unfused, "store the scores, as before 2022");
  command->add_flag("--exhaustive", flags->exhaustive, "play every plan that fits");
  command->footer(
      "Example:\n  ranklab plan --model gpt3-175b --gpus 4096 --gpu a100 --fabric dgx_a100_hdr\n"
      "Exit code 1: no plan fits into the devices' memory.");
  command->callback([flags, &exit_code] { exit_code = Plan(*flags); });
}

}  // namespace ranklab::cli
