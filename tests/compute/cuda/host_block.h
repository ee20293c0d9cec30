// A block of GPU threads (compute/cuda/block.h) whose threads run one after the other on the host,
// in another random order in every phase: a kernel that reads, between two barriers, what another
// thread writes there comes to a wrong result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "core/random.h"

namespace ranklab::compute::cuda {

struct BlockPlace {
  int x = 0, y = 0, z = 0;
};

struct NoState {};

template <int kThreadCount, typename State = NoState>
class HostBlock {
 public:
  static constexpr int kThreads = kThreadCount;

  HostBlock(const BlockPlace& place, std::int64_t shared_floats)
      : place_(place),
        // What nobody has written must not be read.
        shared_(static_cast<std::size_t>(shared_floats), __builtin_nanf("")) {
    std::iota(order_.begin(), order_.end(), 0);
  }

  int x() const { return place_.x; }
  int y() const { return place_.y; }
  int z() const { return place_.z; }
  float* shared() { return shared_.data(); }

  template <typename F>
  void Each(F phase) {
    Shuffle();
    for (const int thread : order_) {
      phase(thread, states_[static_cast<std::size_t>(thread)]);
    }
  }

  template <typename T, typename F, typename Combine>
  T Reduce(F value, Combine combine) {
    Shuffle();
    T all = value(order_[0], states_[static_cast<std::size_t>(order_[0])]);
    for (int i = 1; i < kThreads; ++i) {
      const int thread = order_[static_cast<std::size_t>(i)];
      all = combine(all, value(thread, states_[static_cast<std::size_t>(thread)]));
    }
    return all;
  }

 private:
  void Shuffle() {
    for (std::size_t i = kThreads - 1; i > 0; --i) {
      std::swap(order_[i], order_[static_cast<std::size_t>(random_.Below(i + 1))]);
    }
  }

  const BlockPlace place_;
  std::vector<float> shared_;
  std::vector<State> states_ = std::vector<State>(kThreads);
  std::vector<int> order_ = std::vector<int>(kThreads);
  Random random_{static_cast<std::uint64_t>(place_.x) + 17 * place_.y + 31 * place_.z};
};

// Runs `kernel(block)` on every block of a grid, one after the other.
template <int kThreads, typename State = NoState, typename Kernel>
void RunOnHost(const BlockPlace& grid, std::int64_t shared_floats, Kernel kernel) {
  for (int z = 0; z < grid.z; ++z) {
    for (int y = 0; y < grid.y; ++y) {
      for (int x = 0; x < grid.x; ++x) {
        HostBlock<kThreads, State> block({x, y, z}, shared_floats);
        kernel(block);
      }
    }
  }
}

}  // namespace ranklab::compute::cuda
