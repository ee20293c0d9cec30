#include "sim/step/task_graph.h"

#include <algorithm>

#include "core/check.h"
#include "core/status.h"

namespace ranklab::sim {

TaskGraph::Id TaskGraph::Add(const Task& task, std::initializer_list<Id> after) {
  const Id id = static_cast<Id>(tasks_.size());
  tasks_.push_back(task);
  const auto stream = static_cast<std::size_t>(task.stream);
  if (stream >= last_of_stream_.size()) {
    last_of_stream_.resize(stream + 1, kNone);
  }
  Wait(id, last_of_stream_[stream]);
  last_of_stream_[stream] = id;
  for (const Id earlier : after) {
    Wait(id, earlier);
  }
  return id;
}

void TaskGraph::Wait(Id task, Id after) {
  if (after != kNone) {
    edges_.push_back({.from = after, .to = task});
  }
}

absl::StatusOr<PlayedGraph> TaskGraph::Play() const {
  const std::size_t n = tasks_.size();
  // Edges by their first task: followers of i are followers[begins[i]] up to begins[i + 1].
  std::vector<std::int32_t> begins(n + 1, 0);
  std::vector<std::int32_t> waits(n, 0);
  for (const Edge& edge : edges_) {
    ++begins[static_cast<std::size_t>(edge.from) + 1];
    ++waits[static_cast<std::size_t>(edge.to)];
  }
  for (std::size_t i = 0; i < n; ++i) {
    begins[i + 1] += begins[i];
  }
  std::vector<Id> followers(edges_.size());
  std::vector<std::int32_t> filled(begins.begin(), begins.end() - 1);
  for (const Edge& edge : edges_) {
    followers[static_cast<std::size_t>(filled[static_cast<std::size_t>(edge.from)]++)] = edge.to;
  }

  PlayedGraph played{.begins = std::vector<double>(n, 0), .ends = std::vector<double>(n, 0)};
  std::vector<Id> ready;
  ready.reserve(n);
  for (std::size_t i = 0; i < n; ++i) {
    if (waits[i] == 0) {
      ready.push_back(static_cast<Id>(i));
    }
  }
  for (std::size_t next = 0; next < ready.size(); ++next) {
    const auto i = static_cast<std::size_t>(ready[next]);
    played.ends[i] = played.begins[i] + tasks_[i].seconds;
    played.seconds = std::max(played.seconds, played.ends[i]);
    for (auto f = begins[i]; f < begins[i + 1]; ++f) {
      const auto follower = static_cast<std::size_t>(followers[static_cast<std::size_t>(f)]);
      played.begins[follower] = std::max(played.begins[follower], played.ends[i]);
      if (--waits[follower] == 0) {
        ready.push_back(static_cast<Id>(follower));
      }
    }
  }
  if (ready.size() != n) {
    return FailedPrecondition("%d of %d tasks of a step wait for each other", n - ready.size(), n);
  }
  return played;
}

void SlowOverlapped(TaskGraph& graph, const PlayedGraph& played, int compute, int beside,
                    double slowdown) {
  const std::span<const Task> tasks = graph.tasks();
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].stream == beside) {
      others.push_back(i);
    }
  }
  std::size_t first = 0;
  for (std::size_t i = 0; i < tasks.size() && !others.empty(); ++i) {
    if (tasks[i].stream != compute) {
      continue;
    }
    while (first < others.size() && played.ends[others[first]] <= played.begins[i]) {
      ++first;
    }
    double overlap = 0;
    for (std::size_t o = first; o < others.size() && played.begins[others[o]] < played.ends[i];
         ++o) {
      overlap += std::max(0.0, std::min(played.ends[i], played.ends[others[o]]) -
                                   std::max(played.begins[i], played.begins[others[o]]));
    }
    graph.Lengthen(static_cast<TaskGraph::Id>(i), slowdown * overlap);
  }
}

}  // namespace ranklab::sim
