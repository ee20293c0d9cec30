#include "cli/schedule_time.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <string_view>

#include <CLI/CLI.hpp>
#include <sys/resource.h>

#include "cli/exit_code.h"
#include "collectives/schedule/bandwidth.h"
#include "core/status.h"
#include "experiment/quantity.h"
#include "sim/schedule_player.h"

namespace ranklab::cli {
namespace {

struct Asked {
  Bytes size = 0;
  fabric::CostModel model;
  sim::PlayOptions options;
};

// The parts of "3:1ms", or nothing if they are not `count`.
std::vector<std::string_view> Parts(std::string_view text, std::size_t count) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(':', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts.size() == count ? parts : std::vector<std::string_view>();
}

std::optional<Rank> ParseRank(std::string_view text) {
  const auto number = experiment::ParseInteger(text);
  return number && *number >= 0 && *number <= 1 << 30 ? std::optional(static_cast<Rank>(*number))
                                                      : std::nullopt;
}

// The disturbance of that rank, made if there is none yet.
sim::SlowRank& OfRank(sim::Disturbances& disturbances, Rank rank) {
  for (sim::SlowRank& slow : disturbances.ranks) {
    if (slow.rank == rank) {
      return slow;
    }
  }
  return disturbances.ranks.emplace_back(sim::SlowRank{.rank = rank});
}

absl::Status AddRanks(const TimeFlags& flags, sim::Disturbances& disturbances) {
  for (const std::string& text : flags.late) {
    const auto parts = Parts(text, 2);
    const auto rank = parts.empty() ? std::nullopt : ParseRank(parts[0]);
    const auto late = parts.empty() ? std::nullopt : experiment::ParseDuration(parts[1]);
    if (!rank || !late) {
      return InvalidArgument("--late %s: RANK:TIME is meant, such as 3:1ms", text);
    }
    OfRank(disturbances, *rank).late = std::chrono::duration<double>(*late).count();
  }
  for (const std::string& text : flags.slow_ports) {
    const auto parts = Parts(text, 2);
    const auto rank = parts.empty() ? std::nullopt : ParseRank(parts[0]);
    const auto factor = parts.empty() ? std::nullopt : experiment::ParseNumber(parts[1]);
    if (!rank || !factor) {
      return InvalidArgument("--slow-port %s: RANK:FACTOR is meant, such as 3:2.5", text);
    }
    OfRank(disturbances, *rank).port_factor = *factor;
  }
  return absl::OkStatus();
}

absl::Status AddLinks(const TimeFlags& flags, sim::Disturbances& disturbances) {
  for (const std::string& text : flags.slow_links) {
    const auto parts = Parts(text, 3);
    const auto from = parts.empty() ? std::nullopt : ParseRank(parts[0]);
    const auto to = parts.empty() ? std::nullopt : ParseRank(parts[1]);
    const auto factor = parts.empty() ? std::nullopt : experiment::ParseNumber(parts[2]);
    if (!from || !to || !factor) {
      return InvalidArgument("--slow-link %s: FROM:TO:FACTOR is meant, such as 0:1:2.5", text);
    }
    disturbances.links.push_back({.from = *from, .to = *to, .latency = 0, .factor = *factor});
  }
  return absl::OkStatus();
}

absl::StatusOr<Asked> Read(const TimeFlags& flags) {
  const auto size = experiment::ParseSize(flags.size);
  const auto bandwidth = experiment::ParseBandwidth(flags.bandwidth);
  const auto latency = experiment::ParseDuration(flags.latency);
  if (!size || !bandwidth || !latency) {
    return InvalidArgument(
        "--bytes %s, --bandwidth %s, --latency %s: quantities such as 1GB, 50GB/s and 500ns are "
        "meant",
        flags.size, flags.bandwidth, flags.latency);
  }
  Asked asked{.size = *size,
              .model = fabric::LiveCostModel({.alpha = *latency, .bandwidth = *bandwidth}),
              .options = {.fold = !flags.all_ranks}};
  RETURN_IF_ERROR(AddRanks(flags, asked.options.disturbances));
  RETURN_IF_ERROR(AddLinks(flags, asked.options.disturbances));
  return asked;
}

double ProcessorSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double PeakMegabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024 / 1e6;
}

void PrintModelled(const collectives::Schedule& schedule, const Asked& asked, double seconds) {
  const Nanos time(static_cast<std::int64_t>(seconds * 1e9));
  std::string line =
      absl::StrFormat("%s %s over %d ranks, %d bytes: %.9g s modelled", schedule.name,
                      NameOf(schedule.collective), schedule.group_size, asked.size, seconds);
  if (time > Nanos{}) {
    line += absl::StrFormat(
        ", algbw %.4g GB/s, busbw %.4g GB/s",
        collectives::AlgBandwidth(asked.size, time).bytes_per_second / 1e9,
        collectives::BusBandwidth(schedule.collective, schedule.group_size, asked.size, time)
                .bytes_per_second /
            1e9);
  }
  std::printf("%s\n", line.c_str());
}

void PrintCost(const sim::Played& played, double wall, double processor) {
  const std::string line = absl::StrFormat(
      "%d messages; played for %d ranks: %d in %.3f s, %.3f s of a core (%.2f million a second), "
      "peak memory %.0f MB",
      played.messages, played.ranks_played, played.messages_played, wall, processor,
      static_cast<double>(played.messages_played) / std::max(processor, 1e-9) / 1e6,
      PeakMegabytes());
  std::printf("%s\n", line.c_str());
  if (!played.not_folded.empty()) {
    std::printf("every rank was played: %s\n", played.not_folded.c_str());
  }
}

}  // namespace

void AddTimeFlags(CLI::App& command, TimeFlags& flags) {
  command.add_option("--bytes", flags.size, "the whole buffer")->capture_default_str();
  command.add_option("--bandwidth", flags.bandwidth, "of a rank's port, each direction")
      ->capture_default_str();
  command.add_option("--latency", flags.latency, "of a message")->capture_default_str();
  command.add_option("--late", flags.late, "RANK:TIME, a rank that begins later; repeatable");
  command.add_option("--slow-port", flags.slow_ports, "RANK:FACTOR, a slower port; repeatable");
  command.add_option("--slow-link", flags.slow_links, "FROM:TO:FACTOR, a slower link; repeatable");
  command.add_flag("--all-ranks", flags.all_ranks, "play ranks that do the same one by one");
}

int TimeSchedule(const collectives::Schedule& schedule, const TimeFlags& flags) {
  const absl::StatusOr<Asked> asked = Read(flags);
  if (!asked.ok()) {
    return Fail(asked.status());
  }
  const auto begins = std::chrono::steady_clock::now();
  const double processor = ProcessorSeconds();
  const auto played =
      sim::PlaySchedule(schedule, static_cast<double>(asked->size), asked->model, asked->options);
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begins;
  if (!played.ok()) {
    return Fail(played.status());
  }
  PrintModelled(schedule, *asked, played->ends);
  PrintCost(*played, wall.count(), ProcessorSeconds() - processor);
  return kSuccess;
}

}  // namespace ranklab::cli
