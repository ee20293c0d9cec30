#include "experiment/network_over_repeats.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fabric/held_to_account.h"

namespace ranklab::experiment {
namespace {

using RecordsOfEndpoint = std::vector<const NetworkRecord*>;

// Of those repeats that have the figure; 0 when none has.
double MedianOf(const RecordsOfEndpoint& records, double NetworkRecord::*figure) {
  std::vector<double> values;
  for (const NetworkRecord* record : records) {
    if (record->*figure > 0) {
      values.push_back(record->*figure);
    }
  }
  return values.empty() ? 0 : SpreadOf(std::move(values)).median;
}

bool TimedNothing(const NetworkRecord& record) {
  return record.body_claimed > 0 && record.bandwidth_median == 0 && record.latency_median == 0;
}

fabric::NetworkVerdict JudgeMedians(const NetworkRecord& record) {
  const auto nanos = [](double seconds) { return Nanos(std::llround(seconds * 1e9)); };
  return fabric::HoldToAccount(
      {.port = {.alpha = nanos(record.asked_latency), .bandwidth = {record.asked_bandwidth}},
       .body_received = record.body_claimed},
      {.bandwidth_median = record.bandwidth_median,
       .bandwidth_samples = record.bandwidth_median > 0 ? 1 : 0,
       .latency_median = nanos(record.latency_median),
       .latency_samples = record.latency_median > 0 ? 1 : 0,
       .body_received = record.body_received});
}

NetworkRecord OverRepeats(const RecordsOfEndpoint& records) {
  const auto broken = std::find_if(records.begin(), records.end(), [](const NetworkRecord* one) {
    return one->judged && (one->body_received != one->body_claimed || TimedNothing(*one));
  });
  if (broken != records.end()) {
    return **broken;
  }
  NetworkRecord record = *records.back();
  record.bandwidth_median = MedianOf(records, &NetworkRecord::bandwidth_median);
  record.bandwidth_p90 = MedianOf(records, &NetworkRecord::bandwidth_p90);
  record.latency_median = MedianOf(records, &NetworkRecord::latency_median);
  record.latency_p90 = MedianOf(records, &NetworkRecord::latency_p90);
  for (const NetworkRecord* one : records) {
    record.clock_residual = std::max(record.clock_residual, one->clock_residual);
  }
  if (record.judged) {
    fabric::NetworkVerdict verdict = JudgeMedians(record);
    record.held = verdict.held();
    record.findings = std::move(verdict.findings);
  }
  return record;
}

}  // namespace

std::vector<NetworkRecord> NetworkOverRepeats(std::span<const CellRun* const> runs) {
  std::vector<RecordsOfEndpoint> workers(runs.back()->workers.size());
  std::vector<RecordsOfEndpoint> servers(runs.back()->servers.size());
  for (const CellRun* run : runs) {
    for (std::size_t i = 0; i < std::min(workers.size(), run->workers.size()); ++i) {
      workers[i].push_back(&run->workers[i].network);
    }
    for (std::size_t i = 0; i < std::min(servers.size(), run->servers.size()); ++i) {
      servers[i].push_back(&run->servers[i].network);
    }
  }
  std::vector<NetworkRecord> network;
  for (const auto* endpoints : {&workers, &servers}) {
    for (const RecordsOfEndpoint& records : *endpoints) {
      network.push_back(OverRepeats(records));
    }
  }
  return network;
}

}  // namespace ranklab::experiment
