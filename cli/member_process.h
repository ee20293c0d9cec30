// A worker or a parameter server as a process: ports, session with the coordinator, and the work.
#pragma once

#include <optional>
#include <string>

#include "core/endpoint.h"
#include "core/units.h"

namespace ranklab::cli {

struct MemberProcessOptions {
  Role role = Role::kWorker;
  std::string coordinator = "127.0.0.1:7070";
  std::string listen = "0.0.0.0:0";  // control, health and the gRPC wire; the TCP wire takes a port
                                     // of its own on the same host
  int tcp_port = 0;                  // 0: any
  std::string advertise;             // host that peers can reach; empty: from `listen`
  std::optional<Rank> rank;          // wanted; from the flags or the launch environment
  int launched = 0;                  // processes of this role launched together; 0: unknown
  Nanos join_timeout = std::chrono::seconds(30);
  bool once = false;          // end with the next lab, with its exit code
  bool no_last_word = false;  // a lost coordinator is for its parent to report
};

// Runs until dismissed, interrupted or lost. Returns the process's exit code.
int RunMemberProcess(const MemberProcessOptions& options);

}  // namespace ranklab::cli
