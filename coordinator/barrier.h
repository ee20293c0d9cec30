// A named meeting of a generation's workers. A pure state machine: arrivals in, who goes on out.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/endpoint.h"
#include "core/units.h"

namespace ranklab::coordinator {

// The meetings of every run: nobody trains any more; everybody holds the final parameters, so that
// members may close their wires from then on.
inline constexpr char kTrainedBarrier[] = "trained";
inline constexpr char kFetchedBarrier[] = "fetched";

// The most that a token may have; the coordinator keeps one for each worker.
inline constexpr std::size_t kMostTokenBytes = 1024;

// Opens once every worker has arrived, and stays open. Servers may arrive too: they wait for the
// workers, the workers do not wait for them.
class Barrier {
 public:
  // Requires: workers >= 1.
  explicit Barrier(int workers);

  // Who goes on because of this arrival: nobody before the last worker has come, then all who have
  // arrived, then each late server by itself. A second arrival of the same one releases nobody. A
  // worker may bring a `token` for the others.
  // Requires: a worker's rank is below the number of workers.
  std::vector<Endpoint> Arrive(Endpoint who, std::string token = {});

  // [worker's rank]; empty where none of those who came has brought one.
  const std::vector<std::string>& tokens() const { return tokens_; }

  // A worker that was lost is not waited for. Who goes on because of that. Twice is once.
  std::vector<Endpoint> Leave(Rank worker);

  bool open() const { return open_; }
  // Kept for the owner, which has the clock; nothing before the first worker has come: a server may
  // wait for the whole run.
  void SetDeadline(Nanos deadline) { deadline_ = deadline; }
  std::optional<Nanos> deadline() const { return deadline_; }
  std::vector<Endpoint> MissingWorkers() const;

 private:
  bool complete() const;

  int workers_;
  bool open_ = false;
  std::set<Rank> gone_;
  std::optional<Nanos> deadline_;
  std::set<Endpoint> arrived_;
  std::vector<std::string> tokens_;
};

}  // namespace ranklab::coordinator
