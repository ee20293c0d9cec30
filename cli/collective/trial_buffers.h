// What one rank of a trial sends and receives: seeded values, and the count of those that came out
// wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cli/collective/trial.h"
#include "compute/tensor.h"

namespace ranklab::cli {

// Memory that trials use one after the other.
struct TrialMemory {
  std::vector<std::byte> input;
  std::vector<std::byte> output;
};

// Values are whole numbers so small that their sum over all ranks is exact in every type and order:
// a wrong element is one that differs at all. Each is a function of the rank that sends it and its
// index there, so one that went to the wrong place shows.
class TrialBuffers {
 public:
  // Requires: at most kMostRanks ranks.
  TrialBuffers(const Trial& trial, int ranks, Rank rank, TrialMemory& memory);

  static constexpr int kMostRanks = 64;

  // What this rank sends is set, everything else gets bits that no result has.
  void Fill();

  // Out of place: puts what is sent where the collective, which works in place, expects it.
  // All-to-all needs no such copy.
  void CopyIn();

  // Elements of this rank's result that are not what they should be. Requires: Fill, and one run of
  // the collective since.
  std::int64_t CountWrong() const;

  compute::TensorView input() const { return View(memory_.input, sent_); }
  compute::TensorView output() const { return View(memory_.output, ElementsOf(trial_, ranks_)); }

 private:
  compute::TensorView View(std::vector<std::byte>& bytes, std::int64_t elements) const;
  int ValueAt(Rank sender, std::int64_t index) const;
  int ReducedAt(std::int64_t index) const;
  int ExpectedAt(std::int64_t index) const;
  bool IsSender() const;

  const Trial trial_;
  const int ranks_;
  const Rank rank_;
  TrialMemory& memory_;
  std::int64_t sent_;          // elements
  std::int64_t sent_begin_;    // where they lie in the output when in place
  std::int64_t result_;        // elements
  std::int64_t result_begin_;  // in the output
};

}  // namespace ranklab::cli
