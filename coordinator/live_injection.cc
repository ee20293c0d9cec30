#include "coordinator/live_injection.h"

#include <algorithm>
#include <optional>
#include <variant>
#include <vector>

#include "core/overloaded.h"
#include "core/status.h"
#include "experiment/lab_reader.h"

namespace ranklab::coordinator {
namespace {

constexpr std::chrono::seconds kWallMost(60);

// The modelled duration that an effect names; 0: it names none.
Nanos ModelledTime(const experiment::Injection& injection) {
  return std::visit(Overloaded{[](const experiment::SlowPhase& slow) { return slow.extra; },
                               [](const experiment::Pause& pause) { return pause.duration; },
                               [](const experiment::ShapeLink& link) {
                                 return std::max(link.spec.alpha, link.spec.jitter);
                               },
                               [](const auto&) { return Nanos(0); }},
                    injection.effect);
}

Endpoint Worker(Rank rank) { return {Role::kWorker, rank}; }

std::vector<Endpoint> MeantBy(const experiment::Injection& injection) {
  return std::visit(Overloaded{[](const experiment::ShapeLink& link) {
                                 return std::vector{link.from, link.to};
                               },
                               [](const experiment::Partition& partition) {
                                 std::vector<Endpoint> side;
                                 for (const Rank rank : partition.side) {
                                   side.push_back(Worker(rank));
                                 }
                                 return side;
                               },
                               [](const experiment::Heal&) { return std::vector<Endpoint>{}; },
                               [](const auto& effect) { return std::vector{Worker(effect.rank)}; }},
                    injection.effect);
}

absl::Status CheckIsThere(Endpoint endpoint, const InjectedCell& cell) {
  const bool worker = endpoint.role == Role::kWorker;
  const int count = worker ? cell.workers : cell.servers;
  if (endpoint.rank >= 0 && endpoint.rank < count) {
    return absl::OkStatus();
  }
  if (worker) {
    return InvalidArgument("the running cell has no rank %d; it has %d worker%s, ranks from 0",
                           endpoint.rank, count, count == 1 ? "" : "s");
  }
  return count == 0 ? InvalidArgument(
                          "the running cell has no ps%d: it has no servers; a link is between two "
                          "workers, such as 0-1",
                          endpoint.rank)
                    : InvalidArgument("the running cell has no ps%d; its last server is ps%d",
                                      endpoint.rank, count - 1);
}

// With parameter servers, workers do not speak with each other.
absl::Status CheckIsUsed(const experiment::Injection& injection, const InjectedCell& cell) {
  const auto* link = std::get_if<experiment::ShapeLink>(&injection.effect);
  if (link == nullptr || cell.servers == 0 || link->from.role != link->to.role) {
    return absl::OkStatus();
  }
  return InvalidArgument(
      "the running cell has parameter servers: its workers do not speak with each other, so that a "
      "link between two of them changes nothing; a worker and a server, such as %d-ps0",
      link->from.rank);
}

}  // namespace

std::string TextOf(Nanos duration) {
  const auto count = static_cast<double>(duration.count());
  if (count >= 1e9) {
    return absl::StrFormat("%g s", count / 1e9);
  }
  return count >= 1e6 ? absl::StrFormat("%g ms", count / 1e6)
                      : absl::StrFormat("%g us", count / 1e3);
}

absl::StatusOr<LiveInjection> PrepareInjection(const v1::InjectRequest& request,
                                               const InjectedCell& cell) {
  const std::string text = request.reset() ? "{reset: true}" : request.text();
  ASSIGN_OR_RETURN(const experiment::Injection injection, experiment::ReadInjection(text));
  for (const Endpoint endpoint : MeantBy(injection)) {
    RETURN_IF_ERROR(CheckIsThere(endpoint, cell));
  }
  RETURN_IF_ERROR(CheckIsUsed(injection, cell));
  const Nanos modelled = ModelledTime(injection);
  if (modelled == Nanos(0)) {
    return LiveInjection{.text = text, .description = injection.text};
  }
  const double wall_nanos = static_cast<double>(modelled.count()) * cell.time_scale;
  const Nanos wall(static_cast<std::int64_t>(std::min(wall_nanos, 9e18)));
  const std::string both = cell.time_scale == 1.0 ? TextOf(modelled)
                                                  : absl::StrFormat("%s modelled = %s here",
                                                                    TextOf(modelled), TextOf(wall));
  if (wall > kWallMost && !request.wall()) {
    return InvalidArgument(
        "%s, which is more than %s of wall time; give a shorter one, or --wall to allow it", both,
        TextOf(kWallMost));
  }
  return LiveInjection{.text = text, .description = both};
}

}  // namespace ranklab::coordinator
