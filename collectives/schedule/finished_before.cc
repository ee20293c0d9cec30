#include "collectives/schedule/finished_before.h"

#include "core/check.h"

namespace ranklab::collectives {

void FinishedBefore::Append(std::int32_t channel) {
  const auto op = static_cast<OpIndex>(rows_.size());
  rows_.push_back(bits_.size());
  bits_.resize(bits_.size() + (static_cast<std::size_t>(op) + 63) / 64);
  const auto [last, first_of_channel] = last_in_channel_.try_emplace(channel, op);
  if (!first_of_channel) {
    Inherit(last->second);  // it has started, so what it waited for has finished
    last->second = op;
  }
}

void FinishedBefore::WaitFor(OpIndex earlier) {
  RANKLAB_CHECK(earlier >= 0 && earlier + 1 < static_cast<OpIndex>(rows_.size()));
  Inherit(earlier);
  bits_[rows_.back() + static_cast<std::size_t>(earlier) / 64] |= std::uint64_t{1}
                                                                  << (earlier % 64);
}

void FinishedBefore::Inherit(OpIndex from) {
  const std::size_t row = rows_[static_cast<std::size_t>(from)];
  const std::size_t words = rows_[static_cast<std::size_t>(from) + 1] - row;
  for (std::size_t w = 0; w < words; ++w) {
    bits_[rows_.back() + w] |= bits_[row + w];
  }
}

}  // namespace ranklab::collectives
