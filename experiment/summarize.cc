#include "experiment/summarize.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/check.h"
#include "experiment/findings.h"
#include "experiment/network_over_repeats.h"
#include "experiment/repeat_figures.h"
#include "experiment/utilization.h"

namespace ranklab::experiment {
namespace {

using RunsOfCell = std::vector<const CellRun*>;

// What the lab chose for the cell.
CellSummary Describe(const Lab& lab, const Cell& cell, const RunsOfCell& runs) {
  const LabSpec& spec = cell.spec;
  CellSummary summary{
      .part = lab.parts[static_cast<std::size_t>(cell.part)].name,
      .cell = cell.index,
      .baseline = cell.baseline,
      .settings = cell.settings,
      .exchange = spec.ExchangeName(),
      .transport = spec.Transport(),
      .fabric = spec.fabric.preset,
      .workers = static_cast<int>(runs.front()->workers.size()) * runs.front()->ranks_alike,
      .servers = static_cast<int>(runs.front()->servers.size()),
      .threads = spec.compute.threads,
      .seed = spec.seed,
      .precision = spec.train.precision,
      .wire_dtype = spec.exchange.wire_dtype,
      .time_scale = runs.front()->time_scale,
      .kind = runs.front()->simulated ? FigureKind::kModelled : KindOf(spec),
      .repeats = static_cast<int>(runs.size()),
      .counted_steps = spec.train.steps - spec.train.warmup_steps,
  };
  // Fewer reported where the run was ended before, or went on without one that was lost.
  summary.workers = std::max(summary.workers, spec.cluster.workers);
  return summary;
}

void FillTimes(const LabSpec& spec, const RunsOfCell& runs, CellSummary& summary,
               double& lateness_seconds) {
  std::vector<double> step;
  std::vector<double> rate;
  std::vector<double> exposed;
  std::vector<double> start_up;
  double bytes = 0;
  double predicted = 0;
  lateness_seconds = 0;
  const auto count = static_cast<double>(runs.size());
  for (const CellRun* run : runs) {
    const RepeatFigures figures = FiguresOf(spec, *run);
    step.push_back(figures.step_seconds);
    rate.push_back(figures.samples_per_second);
    exposed.push_back(figures.exposed_seconds);
    start_up.push_back(std::chrono::duration<double>(run->start_up).count());
    bytes += figures.bytes_sent_per_step / count;
    predicted += run->predicted_seconds / count;
    lateness_seconds += figures.lateness_seconds / count;
  }
  summary.step_seconds = SpreadOf(std::move(step));
  summary.samples_per_second = SpreadOf(std::move(rate));
  summary.exposed_seconds = SpreadOf(std::move(exposed));
  summary.start_up_seconds = SpreadOf(std::move(start_up));
  summary.bytes_sent_per_step = std::llround(bytes);
  summary.predicted_seconds = predicted;
  summary.ratio = predicted > 0 ? summary.step_seconds.median / predicted : 0;
  summary.predicted_exposed_seconds = runs.front()->predicted_exposed_seconds;
  summary.exposed_ratio = summary.predicted_exposed_seconds > 0
                              ? summary.exposed_seconds.median / summary.predicted_exposed_seconds
                              : 0;
}

// The modelled device's peak, or each rank's own. A native step over a shaped network has none: its
// compute is wall time, and the step's is divided by the time scale.
void FillPeaks(const LabSpec& spec, const CellRun& run, CellSummary& summary) {
  const bool mixed = spec.compute.native() && run.time_scale != 1;
  for (RankBreakdown& mean : summary.breakdown) {
    const auto rank = static_cast<std::size_t>(mean.rank);
    mean.peak_flops = summary.work.peak_flops;
    if (spec.compute.native()) {
      mean.peak_flops = mixed || rank >= run.workers.size() ? 0 : run.workers[rank].matrix_flops;
    }
  }
}

void FillBreakdown(const LabSpec& spec, const RunsOfCell& runs, CellSummary& summary) {
  const auto count = static_cast<double>(runs.size());
  for (const CellRun* run : runs) {
    const std::vector<RankBreakdown> bars = BreakdownOf(spec, *run);
    if (summary.breakdown.size() < bars.size()) {
      summary.breakdown.resize(bars.size());
    }
    for (std::size_t rank = 0; rank < bars.size(); ++rank) {
      RankBreakdown& mean = summary.breakdown[rank];
      mean.rank = static_cast<Rank>(rank);
      mean.input += bars[rank].input / count;
      mean.forward += bars[rank].forward / count;
      mean.backward += bars[rank].backward / count;
      mean.exposed += bars[rank].exposed / count;
      mean.optimizer += bars[rank].optimizer / count;
      mean.other += bars[rank].other / count;
      mean.hidden += bars[rank].hidden / count;
      mean.samples_per_second += bars[rank].samples_per_second / count;
    }
  }
  summary.work = runs.front()->work;
  FillPeaks(spec, *runs.back(), summary);
}

void FillLearning(const LabSpec& spec, const RunsOfCell& runs, CellSummary& summary) {
  LossCurve curve = runs.front()->simulated ? LossCurve{} : LossCurveOf(spec, *runs.front());
  summary.initial_loss = curve.loss.empty() ? 0 : curve.loss.front();
  summary.loss_curve = std::move(curve.loss);
  summary.loss_seconds = std::move(curve.seconds);
  if (!runs.front()->steps.empty()) {
    const std::vector<StepRecord>& steps = runs.front()->steps.front();
    summary.skipped_steps = std::count_if(steps.begin(), steps.end(),
                                          [](const StepRecord& step) { return step.skipped; });
  }
  double loss = 0;
  double test_loss = 0;
  double accuracy = 0;
  double count = 0;
  std::set<std::string> all_hashes;
  bool equal_across_ranks = true;
  for (const CellRun* run : runs) {
    std::set<std::string> hashes;
    for (const WorkerRecord& worker : run->workers) {
      hashes.insert(worker.param_hash);
      loss += worker.final_loss;
      test_loss += worker.test_loss;
      summary.loss_floor = worker.loss_floor;  // the data's, the same for all
      accuracy += worker.accuracy;
      ++count;
    }
    equal_across_ranks = equal_across_ranks && hashes.size() == 1 && !hashes.contains("");
    all_hashes.merge(hashes);
  }
  summary.final_loss = count > 0 ? loss / count : 0;
  summary.test_loss = count > 0 ? test_loss / count : 0;
  summary.accuracy = count > 0 ? accuracy / count : 0;
  summary.hash_equal_across_ranks = equal_across_ranks;
  summary.hash_equal_across_repeats =
      equal_across_ranks && all_hashes.size() == 1 && runs.size() >= 2;
  if (summary.kind == FigureKind::kModelled) {
    summary.initial_loss = summary.final_loss = summary.accuracy =
        std::numeric_limits<double>::quiet_NaN();
  }
  for (const WorkerRecord& worker : runs.back()->workers) {
    summary.param_hashes.push_back(worker.param_hash);
    summary.samples_per_rank.push_back(worker.samples);
    summary.passes_per_rank.push_back(worker.passes);
  }
}

void FillNetwork(const RunsOfCell& runs, CellSummary& summary) {
  summary.network = NetworkOverRepeats(runs);
  for (const WorkerRecord& worker : runs.back()->workers) {
    summary.memory.insert(summary.memory.end(), worker.memory.begin(), worker.memory.end());
  }
  for (const CellRun* run : runs) {
    for (const WorkerRecord& worker : run->workers) {
      summary.messages += worker.messages;
      summary.could_not_keep_up += worker.could_not_keep_up;
      auto& histogram = summary.lateness_log2_us;
      histogram.resize(std::max(histogram.size(), worker.lateness_log2_us.size()));
      for (std::size_t k = 0; k < worker.lateness_log2_us.size(); ++k) {
        histogram[k] += worker.lateness_log2_us[k];
      }
    }
    for (const ServerRecord& server : run->servers) {
      for (const auto& of_worker : server.staleness) {
        for (const auto& [staleness, reads] : of_worker) {
          summary.staleness[staleness] += reads;
        }
      }
    }
  }
}

CellSummary SummarizeCell(const Lab& lab, const Cell& cell, const RunsOfCell& runs) {
  CellSummary summary = Describe(lab, cell, runs);
  double lateness_seconds = 0;
  FillTimes(cell.spec, runs, summary, lateness_seconds);
  FillBreakdown(cell.spec, runs, summary);
  const std::optional<Finding> refused = FillUtilization(summary);
  FillLearning(cell.spec, runs, summary);
  FillNetwork(runs, summary);
  summary.findings = FindingsOf(cell.spec, summary, runs.front()->cores, lateness_seconds);
  if (refused) {
    summary.findings.push_back(*refused);
  }
  if (const std::string& why = runs.front()->not_simulated; !why.empty()) {
    summary.findings.push_back({.code = "NOT_SIMULATED", .text = why});
  }
  summary.latency_share = runs.front()->latency_share;
  if (runs.front()->ranks_alike > 1) {
    summary.findings.push_back(
        {.code = "CLOSED_FORM",
         .text = absl::StrFormat("%d workers: computed by the closed form of the whole step, not "
                                 "played message by message",
                                 summary.workers)});
  }
  return summary;
}

// The rest of a row needs another row.
void FillEfficiency(const Lab& lab, std::vector<CellSummary>& summaries,
                    const std::map<std::pair<int, int>, std::size_t>& row_of) {
  for (const auto& [place, row] : row_of) {
    const Cell& cell = lab.parts[static_cast<std::size_t>(place.first)]
                           .cells[static_cast<std::size_t>(place.second)];
    CellSummary& summary = summaries[row];
    if (std::holds_alternative<NoExchange>(cell.spec.exchange.kind)) {
      summary.efficiency = 1;
      continue;
    }
    const auto alone = row_of.find({place.first, cell.baseline_index});
    // A native step is wall time and its shaped network modelled time: they do not add up to one.
    const bool mixed = cell.spec.compute.native() && !cell.spec.fabric.native();
    if (alone == row_of.end() || mixed) {
      continue;
    }
    const double ideal =
        summaries[alone->second].samples_per_second.median * std::max(1, summary.workers);
    summary.efficiency = ideal > 0 ? summary.samples_per_second.median / ideal : 0;
  }
}

}  // namespace

std::vector<CellSummary> Summarize(const Lab& lab, std::span<const CellRun> runs) {
  std::map<std::pair<int, int>, RunsOfCell> runs_of;
  for (const CellRun& run : runs) {
    RANKLAB_CHECK(run.part >= 0 && run.part < static_cast<int>(lab.parts.size()), "part %d",
                  run.part);
    const auto& cells = lab.parts[static_cast<std::size_t>(run.part)].cells;
    RANKLAB_CHECK(run.cell >= 0 && run.cell < static_cast<int>(cells.size()), "cell %d", run.cell);
    RANKLAB_CHECK(run.time_scale > 0, "time scale %g", run.time_scale);
    runs_of[{run.part, run.cell}].push_back(&run);
  }
  std::vector<CellSummary> summaries;
  std::map<std::pair<int, int>, std::size_t> row_of;
  for (auto& [place, of_cell] : runs_of) {
    std::stable_sort(of_cell.begin(), of_cell.end(),
                     [](const CellRun* a, const CellRun* b) { return a->repeat < b->repeat; });
    const Cell& cell = lab.parts[static_cast<std::size_t>(place.first)]
                           .cells[static_cast<std::size_t>(place.second)];
    row_of[place] = summaries.size();
    summaries.push_back(SummarizeCell(lab, cell, of_cell));
  }
  FillEfficiency(lab, summaries, row_of);
  return summaries;
}

}  // namespace ranklab::experiment
