// Seeded chance. The same seed gives the same numbers on every machine and compiler, which the
// standard library's distributions do not promise.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

namespace ranklab {

// SplitMix64. Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
// OOPSLA 2014.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t Next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

  // Uniform in [0, 1), 53 bits.
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

  // Uniform in [0, bound). Requires: bound > 0. Bias below 2^-32 for bounds below 2^32.
  std::uint64_t Below(std::uint64_t bound) {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(Next()) * bound) >> 64);
  }

  // Mean 0, variance 1. Source: Box and Muller, Annals of Mathematical Statistics 29(2), 1958.
  double Normal();

  // Another stream, independent of this one for practical purposes.
  Random Split(std::uint64_t stream) const { return Random(Mix(state_ ^ Mix(stream + 1))); }

  // Fisher and Yates.
  template <typename T>
  void Shuffle(std::span<T> items) {
    for (std::uint64_t i = items.size(); i > 1; --i) {
      std::swap(items[i - 1], items[Below(i)]);
    }
  }

 private:
  static std::uint64_t Mix(std::uint64_t value) { return Random(value).Next(); }

  std::uint64_t state_;
};

}  // namespace ranklab
