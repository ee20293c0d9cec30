#include "cli/collective/table.h"

#include <algorithm>

#include <absl/strings/str_format.h>
#include <nlohmann/json.hpp>

#include "cli/build_id.h"
#include "collectives/schedule/bandwidth.h"

namespace ranklab::cli {
namespace {

using collectives::Collective;
using nlohmann::json;

constexpr double kGiga = 1e9;
constexpr int kTimeWidth = 7;

struct Speed {
  double microseconds = 0;
  double algbw = 0;             // 10^9 bytes a second
  std::optional<double> busbw;  // none where one rank has nobody to talk to
};

Speed SpeedOf(const Trial& trial, int ranks, const Measurement& measured) {
  const Nanos time(std::max<std::int64_t>(1, static_cast<std::int64_t>(measured.seconds * 1e9)));
  const Bytes size = SizeOf(trial, ranks);
  Speed speed{.microseconds = measured.seconds * 1e6,
              .algbw = collectives::AlgBandwidth(size, time).bytes_per_second / kGiga,
              .busbw = std::nullopt};
  if (ranks > 1) {
    speed.busbw =
        collectives::BusBandwidth(trial.collective, ranks, size, time).bytes_per_second / kGiga;
  }
  return speed;
}

// Two decimals as long as they fit, then one, then none, then an exponent.
std::string PrintTime(double microseconds) {
  for (const int decimals : {2, 1, 0}) {
    const std::string text = absl::StrFormat("%.*f", decimals, microseconds);
    if (text.size() <= static_cast<std::size_t>(kTimeWidth)) {
      return text;
    }
  }
  return absl::StrFormat("%.1e", microseconds);
}

std::string PrintPlacement(const Trial& trial, int ranks,
                           const std::optional<Measurement>& measured) {
  if (!measured) {
    return absl::StrFormat("  %7s  %6s  %6s  %6s", "N/A", "N/A", "N/A", "N/A");
  }
  const Speed speed = SpeedOf(trial, ranks, *measured);
  return absl::StrFormat("  %7s  %6.2f  %6s  %6s", PrintTime(speed.microseconds), speed.algbw,
                         speed.busbw ? absl::StrFormat("%.2f", *speed.busbw) : "n/a",
                         trial.check ? std::to_string(measured->wrong) : "N/A");
}

std::string RedOpOf(const Trial& trial) {
  return Reduces(trial.collective) ? NcclName(trial.op) : "none";
}

Rank RootOf(const Trial& trial) { return HasRoot(trial.collective) ? trial.root : -1; }

std::optional<double> RatioOf(const std::optional<Measurement>& rival,
                              const std::optional<Measurement>& ours) {
  if (!rival || !ours || ours->seconds <= 0) {
    return std::nullopt;
  }
  return rival->seconds / ours->seconds;
}

std::string PrintRival(const RivalResult& rival, const Row& row, int ranks) {
  if (!rival.why_not.empty()) {
    return absl::StrFormat("# %s: %s\n", rival.name, rival.why_not);
  }
  std::string line = absl::StrFormat("# %-50s", rival.name);
  std::string ratios;
  for (std::size_t i = 0; i < rival.measured.size(); ++i) {
    line += PrintPlacement(row.trial, ranks, rival.measured[i]);
    const std::optional<double> ratio = RatioOf(rival.measured[i], row.measured[i]);
    ratios += ratio ? absl::StrFormat("  x%5.2f", *ratio) : "     N/A";
  }
  return line + ratios + "\n";
}

// The mean over all rows and placements, as nccl-tests has it: it depends on the sizes.
double AverageBusBandwidth(const std::vector<Row>& rows, int ranks) {
  double sum = 0;
  int count = 0;
  for (const Row& row : rows) {
    for (const std::optional<Measurement>& measured : row.measured) {
      if (measured) {
        sum += SpeedOf(row.trial, ranks, *measured).busbw.value_or(0);
        ++count;
      }
    }
  }
  return count == 0 ? 0 : sum / count;
}

json PlacementJson(const Trial& trial, int ranks, const std::optional<Measurement>& measured) {
  if (!measured) {
    return nullptr;
  }
  const Speed speed = SpeedOf(trial, ranks, *measured);
  json object{{"time", speed.microseconds},
              {"alg_bw", speed.algbw},
              {"bus_bw", nullptr},
              {"nwrong", nullptr}};
  if (speed.busbw) {
    object["bus_bw"] = *speed.busbw;
  }
  if (trial.check) {
    object["nwrong"] = measured->wrong;
  }
  return object;
}

json RivalJson(const RivalResult& rival, const Row& row, int ranks) {
  json object{{"name", rival.name}};
  if (!rival.why_not.empty()) {
    object["why_not"] = rival.why_not;
    return object;
  }
  const char* const names[] = {"out_of_place", "in_place"};
  for (std::size_t i = 0; i < rival.measured.size(); ++i) {
    object[names[i]] = PlacementJson(row.trial, ranks, rival.measured[i]);
    if (const auto ratio = RatioOf(rival.measured[i], row.measured[i])) {
      object[names[i]]["ratio"] = *ratio;
    }
  }
  return object;
}

json RowJson(const Row& row, int ranks) {
  json object{{"size", SizeOf(row.trial, ranks)},
              {"count", row.trial.count},
              {"type", NcclName(row.trial.dtype)},
              {"redop", RedOpOf(row.trial)},
              {"root", RootOf(row.trial)},
              {"algorithm", row.trial.algorithm},
              {"out_of_place", PlacementJson(row.trial, ranks, row.measured[0])},
              {"in_place", PlacementJson(row.trial, ranks, row.measured[1])}};
  for (const RivalResult& rival : row.rivals) {
    object["rivals"].push_back(RivalJson(rival, row, ranks));
  }
  return object;
}

}  // namespace

std::int64_t WrongIn(const std::vector<Row>& rows) {
  std::int64_t wrong = 0;
  const auto add = [&wrong](const Placements& measured) {
    for (const std::optional<Measurement>& one : measured) {
      wrong += one ? one->wrong : 0;
    }
  };
  for (const Row& row : rows) {
    add(row.measured);
    for (const RivalResult& rival : row.rivals) {
      add(rival.measured);
    }
  }
  return wrong;
}

std::string PrintHead(const SweepOptions& options, Way way, bool checksums) {
  std::string head =
      absl::StrFormat("# %s\n# Collective test starting: %s_perf\n", kBuild, options.collective);
  head += absl::StrFormat(
      "# ranks %d transport: %s checksums: %d minBytes %d maxBytes %d step: %d(%s) "
      "warmup iters: %d iters: %d repeats: %d validation: %d\n",
      options.ranks, way == Way::kTcp ? "tcp (127.0.0.1)" : "shm", static_cast<int>(checksums),
      options.min_bytes, options.max_bytes,
      options.step_factor > 1 ? options.step_factor : options.step_bytes,
      options.step_factor > 1 ? "factor" : "bytes", options.warmup, options.iterations,
      options.repeats, options.check);
  if (options.collective != "alltoall") {
    head +=
        "# Collectives work in place: out of place, the input is copied first, within the time.\n";
  }
  if (options.repeats > 1) {
    head += "# Each row is the median of its repeats; all contestants take turns.\n";
  }
  return head;
}

std::string PrintAlgorithm(const Trial& trial) {
  std::string head = absl::StrFormat("#\n# Algorithm %s\n", trial.algorithm);
  head += absl::StrFormat(
      "# %10s  %12s  %8s  %6s  %6s           out-of-place                       in-place          "
      "\n",
      "", "", "", "", "");
  head += absl::StrFormat("# %10s  %12s  %8s  %6s  %6s", "size", "count", "type", "redop", "root");
  for (int i = 0; i < 2; ++i) {
    head += absl::StrFormat("  %7s  %6s  %6s  %6s", "time", "algbw", "busbw", "#wrong");
  }
  head += absl::StrFormat("\n# %10s  %12s  %8s  %6s  %6s", "(B)", "(elements)", "", "", "");
  for (int i = 0; i < 2; ++i) {
    head += absl::StrFormat("  %7s  %6s  %6s  %6s", "(us)", "(GB/s)", "(GB/s)", "");
  }
  return head + "\n";
}

std::string PrintRow(const Row& row, int ranks) {
  const Trial& trial = row.trial;
  std::string text = absl::StrFormat("%12d  %12d  %8s  %6s  %6d", SizeOf(trial, ranks), trial.count,
                                     NcclName(trial.dtype), RedOpOf(trial), RootOf(trial));
  for (const std::optional<Measurement>& measured : row.measured) {
    text += PrintPlacement(trial, ranks, measured);
  }
  text += "\n";
  for (const RivalResult& rival : row.rivals) {
    text += PrintRival(rival, row, ranks);
  }
  return text;
}

std::string PrintTail(const std::vector<Row>& rows, const SweepOptions& options) {
  const std::int64_t wrong = WrongIn(rows);
  std::string tail =
      absl::StrFormat("# Out of bounds values : %d %s\n", wrong, wrong == 0 ? "OK" : "FAILED");
  tail += options.ranks > 1 ? absl::StrFormat("# Avg bus bandwidth    : %g\n",
                                              AverageBusBandwidth(rows, options.ranks))
                            : "# Avg bus bandwidth    : n/a (one rank)\n";
  return tail + absl::StrFormat("#\n# Collective test concluded: %s_perf\n", options.collective);
}

std::string PrintJson(const std::vector<Row>& rows, const SweepOptions& options, Way way,
                      bool checksums) {
  json results = json::array();
  for (const Row& row : rows) {
    results.push_back(RowJson(row, options.ranks));
  }
  const std::int64_t wrong = WrongIn(rows);
  const json report{
      {"version", kBuild},
      {"config",
       {{"ranks", options.ranks},
        {"transport", way == Way::kTcp ? "tcp" : "shm"},
        {"checksums", checksums},
        {"minimum_bytes", options.min_bytes},
        {"maximum_bytes", options.max_bytes},
        {"warmup_iters", options.warmup},
        {"iterations", options.iterations},
        {"repeats", options.repeats},
        {"validation", options.check}}},
      {"results", std::move(results)},
      {"out_of_bounds", {{"count", wrong}, {"okay", wrong == 0}}},
      {"average_bus_bandwidth", {{"bandwidth", AverageBusBandwidth(rows, options.ranks)}}}};
  return report.dump(2) + "\n";
}

}  // namespace ranklab::cli
