#include "cli/collective/trial_buffers.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "compute/cpu_convert.h"
#include "core/check.h"
#include "core/random.h"

namespace ranklab::cli {
namespace {

using collectives::Collective;
using compute::DType;
using compute::ReduceOp;

// The largest whole number up to which bfloat16 has them all.
constexpr int kExactBelow = 256;
constexpr std::uint64_t kSeed = 7;

// use(begin, values): the elements from `begin` on, a piece at a time.
template <typename Use>
void ForEachPiece(std::int64_t elements, Use use) {
  constexpr std::int64_t kPiece = 2048;
  std::array<float, kPiece> values;
  for (std::int64_t begin = 0; begin < elements; begin += kPiece) {
    use(begin,
        std::span(values).first(static_cast<std::size_t>(std::min(kPiece, elements - begin))));
  }
}

// Values to and from the elements of `view` from `begin` on, whatever their type.
void Store(std::span<const float> values, const compute::TensorView& view, std::int64_t begin) {
  const auto count = static_cast<std::int64_t>(values.size());
  const compute::TensorView to = compute::Slice(view, begin, begin + count);
  if (compute::Is16Bit(view.dtype)) {
    compute::Narrow(values.data(), view.dtype, to.data, count);
  } else if (view.dtype == DType::kInt32) {
    std::ranges::copy(values, compute::HostValues<std::int32_t>(to).begin());
  } else {
    std::ranges::copy(values, compute::HostValues<float>(to).begin());
  }
}
void Load(const compute::TensorView& view, std::int64_t begin, std::span<float> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  const compute::TensorView from = compute::Slice(view, begin, begin + count);
  if (compute::Is16Bit(view.dtype)) {
    compute::Widen(from.data, view.dtype, values.data(), count);
  } else if (view.dtype == DType::kInt32) {
    std::ranges::copy(compute::HostValues<std::int32_t>(from), values.begin());
  } else {
    std::ranges::copy(compute::HostValues<float>(from), values.begin());
  }
}

}  // namespace

TrialBuffers::TrialBuffers(const Trial& trial, int ranks, Rank rank, TrialMemory& memory)
    : trial_(trial), ranks_(ranks), rank_(rank), memory_(memory) {
  RANKLAB_CHECK(ranks <= kMostRanks && rank < ranks, "rank %d of %d", rank, ranks);
  const std::int64_t all = ElementsOf(trial, ranks);
  const bool gathers = trial.collective == Collective::kAllGather;
  const bool scatters = trial.collective == Collective::kReduceScatter;
  sent_ = gathers ? trial.count : all;
  sent_begin_ = gathers ? rank * trial.count : 0;
  result_ = scatters ? trial.count : all;
  result_begin_ = scatters ? rank * trial.count : 0;
  if (trial.collective == Collective::kReduce && rank != trial.root) {
    result_ = 0;
  }
  const auto size = static_cast<std::size_t>(compute::SizeOf(trial.dtype));
  const auto grow = [&](std::vector<std::byte>& bytes, std::int64_t elements) {
    bytes.resize(std::max(bytes.size(), static_cast<std::size_t>(elements) * size));
  };
  grow(memory.output, all);
  if (!trial.in_place) {
    grow(memory.input, sent_);
  }
}

compute::TensorView TrialBuffers::View(std::vector<std::byte>& bytes, std::int64_t elements) const {
  return {bytes.data(), trial_.dtype, {elements, 1, 1, 1}, nullptr};
}

bool TrialBuffers::IsSender() const {
  return trial_.collective != Collective::kBroadcast || rank_ == trial_.root;
}

void TrialBuffers::Fill() {
  std::memset(output().data, 0xff, static_cast<std::size_t>(output().byte_count()));
  if (!IsSender()) {
    return;
  }
  const compute::TensorView sent =
      trial_.in_place ? compute::Slice(output(), sent_begin_, sent_begin_ + sent_) : input();
  ForEachPiece(sent_, [&](std::int64_t begin, std::span<float> values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(ValueAt(rank_, begin + static_cast<std::int64_t>(i)));
    }
    Store(values, sent, begin);
  });
}

void TrialBuffers::CopyIn() {
  if (trial_.in_place || trial_.collective == Collective::kAllToAll || !IsSender()) {
    return;
  }
  const compute::TensorView from = input();
  const compute::TensorView to = compute::Slice(output(), sent_begin_, sent_begin_ + sent_);
  std::copy_n(from.data, from.byte_count(), to.data);
}

std::int64_t TrialBuffers::CountWrong() const {
  const compute::TensorView result =
      compute::Slice(output(), result_begin_, result_begin_ + result_);
  std::int64_t wrong = 0;
  ForEachPiece(result_, [&](std::int64_t begin, std::span<float> values) {
    Load(result, begin, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const int expected = ExpectedAt(begin + static_cast<std::int64_t>(i));
      wrong += values[i] == static_cast<float>(expected) ? 0 : 1;
    }
  });
  return wrong;
}

int TrialBuffers::ValueAt(Rank sender, std::int64_t index) const {
  const auto range = static_cast<std::uint64_t>(kExactBelow / ranks_);
  const auto place = (static_cast<std::uint64_t>(sender) << 40) + static_cast<std::uint64_t>(index);
  return static_cast<int>(Random(kSeed + place * 0x9e3779b97f4a7c15ULL).Below(range));
}

int TrialBuffers::ReducedAt(std::int64_t index) const {
  int reduced = ValueAt(0, index);
  for (Rank sender = 1; sender < ranks_; ++sender) {
    const int value = ValueAt(sender, index);
    switch (trial_.op) {
      case ReduceOp::kSum:
        reduced += value;
        break;
      case ReduceOp::kMax:
        reduced = std::max(reduced, value);
        break;
      case ReduceOp::kMin:
        reduced = std::min(reduced, value);
        break;
    }
  }
  return reduced;
}

int TrialBuffers::ExpectedAt(std::int64_t index) const {
  const auto sender = static_cast<Rank>(index / std::max<std::int64_t>(trial_.count, 1));
  switch (trial_.collective) {
    case Collective::kAllGather:
      return ValueAt(sender, index % trial_.count);
    case Collective::kAllToAll:
      return ValueAt(sender, rank_ * trial_.count + index % trial_.count);
    case Collective::kReduceScatter:
      return ReducedAt(rank_ * trial_.count + index);
    case Collective::kBroadcast:
      return ValueAt(trial_.root, index);
    default:
      return ReducedAt(index);
  }
}

}  // namespace ranklab::cli
