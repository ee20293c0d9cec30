// Tasks on streams: a stream runs its tasks one at a time in the order in which they were added, as
// a device's streams do, and a task waits for those that it names. What overlaps and what is waited
// for comes out of it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include <absl/status/statusor.h>

namespace ranklab::sim {

enum class TaskKind : std::uint8_t {
  kForward,
  kBackward,
  kSend,
  kGather,  // of sharded weights
  kReduce,  // of gradients
  kUpdate,
};

struct Task {
  int stream = 0;
  TaskKind kind = TaskKind::kForward;
  double seconds = 0;
  int micro_batch = -1;
  int chunk = 0;
};

struct PlayedGraph {
  std::vector<double> begins;  // seconds, by task
  std::vector<double> ends;
  double seconds = 0;  // the last end
};

class TaskGraph {
 public:
  using Id = std::int32_t;
  static constexpr Id kNone = -1;

  // `after`: tasks to wait for; kNone among them waits for nothing.
  Id Add(const Task& task, std::initializer_list<Id> after);
  void Wait(Id task, Id after);  // one more
  void Lengthen(Id task, double seconds) {
    tasks_[static_cast<std::size_t>(task)].seconds += seconds;
  }

  std::span<const Task> tasks() const { return tasks_; }

  // Errors: FailedPrecondition, tasks that wait for each other. Cost: O(tasks + waits).
  absl::StatusOr<PlayedGraph> Play() const;

 private:
  struct Edge {
    Id from = kNone;
    Id to = kNone;
  };

  std::vector<Task> tasks_;
  std::vector<Edge> edges_;
  std::vector<Id> last_of_stream_;
};

// Lengthens the tasks of stream `compute` by `slowdown` times the share of them during which a task
// of `beside` ran. Two plays then give the interference of overlapping communication.
void SlowOverlapped(TaskGraph& graph, const PlayedGraph& played, int compute, int beside,
                    double slowdown);

}  // namespace ranklab::sim
