// `ranklab schedule time`: how long a schedule takes on an ideal network, in virtual time.
#pragma once

#include <string>
#include <vector>

#include "collectives/schedule/schedule.h"

namespace CLI {
class App;
}

namespace ranklab::cli {

struct TimeFlags {
  std::string size = "1GB";
  std::string bandwidth = "50GB/s";
  std::string latency = "500ns";
  std::vector<std::string> late;        // "RANK:TIME"
  std::vector<std::string> slow_ports;  // "RANK:FACTOR"
  std::vector<std::string> slow_links;  // "FROM:TO:FACTOR"
  bool all_ranks = false;
};

// `flags` must outlive the parsing.
void AddTimeFlags(CLI::App& command, TimeFlags& flags);

// Prints what it took; an exit code.
int TimeSchedule(const collectives::Schedule& schedule, const TimeFlags& flags);

}  // namespace ranklab::cli
