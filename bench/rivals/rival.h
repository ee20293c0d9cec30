// What the rivals of `ranklab collective --rivals` have in common: how a trial is told, and values
// that show a wrong sum. Nothing of ranklab: these programs stand alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

namespace rival {

// A line of words: collective, count, in_place, warmup, iterations, check. Float, sum, root 0;
// `count` as in nccl-tests.
struct Trial {
  std::string collective;
  std::int64_t count = 0;
  bool in_place = false;
  int warmup = 0;
  int iterations = 0;
  bool check = false;
};

inline bool ReadTrial(const std::string& line, Trial& trial) {
  std::istringstream words(line);
  return static_cast<bool>(words >> trial.collective >> trial.count >> trial.in_place >>
                           trial.warmup >> trial.iterations >> trial.check);
}

inline void Say(double seconds, std::int64_t wrong) {
  std::printf("{\"seconds\":%.9g,\"wrong\":%lld}\n", seconds, static_cast<long long>(wrong));
  std::fflush(stdout);
}

// Small whole numbers: their sums are exact in any order.
inline float ValueAt(int rank, std::int64_t index) {
  return static_cast<float>((index * 5 + rank * 3) % 7);
}

struct Buffers {
  std::vector<float> input;
  std::vector<float> output;
};

// Elements that `rank` sends, and where in the output they lie when in place.
inline std::int64_t SentOf(const Trial& trial, int ranks) {
  const bool blocks = trial.collective == "reduce_scatter" || trial.collective == "alltoall";
  return blocks ? trial.count * ranks : trial.count;
}
inline std::int64_t WholeOf(const Trial& trial, int ranks) {
  return trial.collective == "all_gather" ? trial.count * ranks : SentOf(trial, ranks);
}

inline void Fill(const Trial& trial, int ranks, int rank, Buffers& buffers) {
  const std::int64_t sent = SentOf(trial, ranks);
  buffers.output.assign(static_cast<std::size_t>(WholeOf(trial, ranks)), -1.0F);
  if (!trial.in_place) {
    buffers.input.resize(static_cast<std::size_t>(sent));
  }
  float* to = trial.in_place ? buffers.output.data() : buffers.input.data();
  if (trial.in_place && trial.collective == "all_gather") {
    to += rank * trial.count;
  }
  for (std::int64_t i = 0; i < sent; ++i) {
    to[i] = ValueAt(rank, i);
  }
}

inline float SumAt(int ranks, std::int64_t index) {
  float sum = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    sum += ValueAt(rank, index);
  }
  return sum;
}

// Where the result lies: the output, for all but an in-place reduce-scatter of MPI its first
// elements.
inline std::int64_t CountWrong(const Trial& trial, int ranks, int rank, const Buffers& buffers) {
  const std::string& what = trial.collective;
  if (what == "reduce" && rank != 0) {
    return 0;
  }
  const std::int64_t elements =
      what == "reduce_scatter" ? trial.count : static_cast<std::int64_t>(buffers.output.size());
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < elements; ++i) {
    float expected = 0;
    if (what == "all_gather") {
      expected = ValueAt(static_cast<int>(i / trial.count), i % trial.count);
    } else if (what == "alltoall") {
      expected = ValueAt(static_cast<int>(i / trial.count), rank * trial.count + i % trial.count);
    } else if (what == "broadcast") {
      expected = ValueAt(0, i);
    } else {
      expected = SumAt(ranks, what == "reduce_scatter" ? rank * trial.count + i : i);
    }
    wrong += buffers.output[static_cast<std::size_t>(i)] == expected ? 0 : 1;
  }
  return wrong;
}

// Seconds of one of `times` calls in a row, after a barrier.
template <typename Barrier, typename Call>
double SecondsOf(int times, Barrier barrier, Call call) {
  barrier();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) {
    call();
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  return times == 0 ? 0.0 : taken.count() / times;
}

}  // namespace rival
