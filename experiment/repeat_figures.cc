#include "experiment/repeat_figures.h"

#include <algorithm>
#include <limits>
#include <map>

namespace ranklab::experiment {
namespace {

double Seconds(Nanos wall, double time_scale) {
  return std::chrono::duration<double>(wall).count() / time_scale;
}

bool Counted(const LabSpec& spec, const StepRecord& record) {
  return record.step > spec.train.warmup_steps;
}

double MedianOf(std::vector<double> values) {
  return values.empty() ? 0 : SpreadOf(std::move(values)).median;
}

// One step over all ranks that reported it.
struct GlobalStep {
  double slowest = 0, exposed = 0;
  std::int64_t samples = 0;
  int ranks = 0;
};

std::map<Step, GlobalStep> CountedSteps(const LabSpec& spec, const CellRun& run) {
  std::map<Step, GlobalStep> steps;
  for (const std::vector<StepRecord>& rank : run.steps) {
    for (const StepRecord& record : rank) {
      if (Counted(spec, record)) {
        GlobalStep& step = steps[record.step];
        step.slowest = std::max(step.slowest, Seconds(record.step_time, run.time_scale));
        step.exposed += Seconds(record.exposed, run.time_scale);
        step.samples += record.samples * run.ranks_alike;
        ++step.ranks;
      }
    }
  }
  // A step that a rank did not finish (the run was ended) is no step of the cluster.
  std::erase_if(steps, [&](const auto& step) {
    return step.second.ranks < static_cast<int>(run.steps.size());
  });
  return steps;
}

void FillSynchronous(const LabSpec& spec, const CellRun& run, RepeatFigures& figures) {
  std::vector<double> times;
  std::vector<double> exposed;
  std::vector<double> rates;  // a short last batch of an epoch has fewer samples, and less time
  for (const auto& [number, step] : CountedSteps(spec, run)) {
    times.push_back(step.slowest);
    exposed.push_back(step.exposed / step.ranks);
    if (step.slowest > 0) {
      rates.push_back(static_cast<double>(step.samples) / step.slowest);
    }
  }
  if (times.empty()) {
    return;
  }
  figures.step_seconds = MedianOf(std::move(times));
  figures.exposed_seconds = MedianOf(std::move(exposed));
  figures.samples_per_second = MedianOf(std::move(rates));
}

struct Window {
  Nanos begins = Nanos::min();
  Nanos ends = Nanos::max();
};

// In which every rank was at work on counted steps; empty (begins >= ends) when there is none.
Window CommonWindow(const LabSpec& spec, const CellRun& run) {
  Window window;
  for (const std::vector<StepRecord>& rank : run.steps) {
    Nanos first = Nanos::max();
    Nanos last = Nanos::min();
    for (const StepRecord& record : rank) {
      if (Counted(spec, record)) {
        first = std::min(first, record.begins);
        last = std::max(last, record.begins + record.step_time);
      }
    }
    window.begins = std::max(window.begins, first);
    window.ends = std::min(window.ends, last);
  }
  return window;
}

void FillAsynchronous(const LabSpec& spec, const CellRun& run, RepeatFigures& figures) {
  const Window window = CommonWindow(spec, run);
  std::vector<double> times;
  std::vector<double> exposed;
  double samples = 0;
  for (const std::vector<StepRecord>& rank : run.steps) {
    for (const StepRecord& record : rank) {
      if (!Counted(spec, record)) {
        continue;
      }
      times.push_back(Seconds(record.step_time, run.time_scale));
      exposed.push_back(Seconds(record.exposed, run.time_scale));
      const Nanos inside = std::min(record.begins + record.step_time, window.ends) -
                           std::max(record.begins, window.begins);
      if (inside > Nanos::zero() && record.step_time > Nanos::zero()) {
        samples += static_cast<double>(record.samples) * static_cast<double>(inside.count()) /
                   static_cast<double>(record.step_time.count());
      }
    }
  }
  figures.step_seconds = MedianOf(std::move(times));
  figures.exposed_seconds = MedianOf(std::move(exposed));
  if (window.begins < window.ends) {
    figures.samples_per_second = samples / Seconds(window.ends - window.begins, run.time_scale);
  }
}

std::vector<const StepRecord*> InOrderOfEnd(const CellRun& run) {
  std::vector<const StepRecord*> records;
  for (const std::vector<StepRecord>& rank : run.steps) {
    for (const StepRecord& record : rank) {
      records.push_back(&record);
    }
  }
  std::stable_sort(records.begin(), records.end(), [](const StepRecord* a, const StepRecord* b) {
    return a->begins + a->step_time < b->begins + b->step_time;
  });
  return records;
}

}  // namespace

RepeatFigures FiguresOf(const LabSpec& spec, const CellRun& run) {
  RepeatFigures figures;
  if (spec.asynchronous()) {
    FillAsynchronous(spec, run, figures);
  } else {
    FillSynchronous(spec, run, figures);
  }
  double lateness = 0;
  double bytes = 0;
  std::int64_t count = 0;
  for (const std::vector<StepRecord>& rank : run.steps) {
    for (const StepRecord& record : rank) {
      if (Counted(spec, record)) {
        lateness += Seconds(record.lateness, run.time_scale);
        bytes += static_cast<double>(record.bytes_sent);
        ++count;
      }
    }
  }
  if (count > 0) {
    figures.lateness_seconds = lateness / static_cast<double>(count);
    figures.bytes_sent_per_step = bytes / static_cast<double>(count);
  }
  return figures;
}

std::vector<RankBreakdown> BreakdownOf(const LabSpec& spec, const CellRun& run) {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  std::vector<RankBreakdown> bars;
  for (std::size_t rank = 0; rank < run.steps.size(); ++rank) {
    RankBreakdown bar{.rank = static_cast<Rank>(rank)};
    double whole = 0;
    double samples = 0;
    double count = 0;
    for (const StepRecord& record : run.steps[rank]) {
      if (!Counted(spec, record)) {
        continue;
      }
      bar.input += Seconds(record.input, run.time_scale);
      bar.forward += Seconds(record.forward, run.time_scale);
      bar.backward += Seconds(record.backward, run.time_scale);
      bar.exposed += Seconds(record.exposed, run.time_scale);
      bar.optimizer += Seconds(record.optimizer, run.time_scale);
      bar.hidden += record.hidden ? Seconds(*record.hidden, run.time_scale) : kUnknown;
      samples += static_cast<double>(record.samples);
      whole += Seconds(record.step_time, run.time_scale);
      ++count;
    }
    if (count > 0) {
      bar.samples_per_second = whole > 0 ? samples / whole : 0;
      bar.hidden /= count;
      for (double* part : {&bar.input, &bar.forward, &bar.backward, &bar.exposed, &bar.optimizer}) {
        *part /= count;
        whole -= *part * count;
      }
      bar.other = std::max(0.0, whole / count);
    }
    bars.push_back(bar);
  }
  return bars;
}

LossCurve LossCurveOf(const LabSpec& spec, const CellRun& run) {
  struct Batch {
    double loss = 0, weight = 0;
    Nanos ends = Nanos::min();
  };
  std::map<std::int64_t, Batch> batches;
  Nanos origin = Nanos::max();
  std::int64_t done = 0;
  for (const StepRecord* record : InOrderOfEnd(run)) {
    const std::int64_t number = spec.asynchronous()
                                    ? done++ / static_cast<std::int64_t>(run.steps.size()) + 1
                                    : record->step;
    Batch& batch = batches[number];
    batch.loss += record->loss_sum;
    batch.weight += record->weight;
    batch.ends = std::max(batch.ends, record->begins + record->step_time);
    origin = std::min(origin, record->begins);
  }
  LossCurve curve;
  for (const auto& [number, batch] : batches) {
    if (batch.weight > 0) {
      curve.loss.push_back(batch.loss / batch.weight);
      curve.seconds.push_back(Seconds(batch.ends - origin, run.time_scale));
    }
  }
  return curve;
}

}  // namespace ranklab::experiment
