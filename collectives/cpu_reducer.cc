#include "collectives/cpu_reducer.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "compute/cpu_convert.h"
#include "core/check.h"

namespace ranklab::collectives {
namespace {

using compute::DType;
using compute::ReduceOp;

// The compiler turns these loops into vector instructions.
template <typename T, typename Combine>
void ForEachElement(std::span<T> target, std::span<const T> source, Combine combine) {
  T* __restrict to = target.data();
  const T* __restrict from = source.data();
  const std::size_t count = target.size();
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = combine(to[i], from[i]);
  }
}

float Sum(float a, float b) { return a + b; }
std::int32_t Sum(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
}

template <typename T>
void ReduceAs(ReduceOp op, const compute::TensorView& target, const compute::TensorView& source) {
  const std::span<T> to = compute::HostValues<T>(target);
  const std::span<const T> from = compute::HostValues<T>(source);
  switch (op) {
    case ReduceOp::kSum:
      return ForEachElement(to, from, [](T a, T b) { return Sum(a, b); });
    case ReduceOp::kMax:
      return ForEachElement(to, from, [](T a, T b) { return a < b ? b : a; });
    case ReduceOp::kMin:
      return ForEachElement(to, from, [](T a, T b) { return b < a ? b : a; });
  }
}

// In float32, rounded once, a piece at a time that stays in the cache.
void ReduceRounded(ReduceOp op, const compute::TensorView& target,
                   const compute::TensorView& source) {
  constexpr std::int64_t kPiece = 2048;
  std::array<float, kPiece> to;
  std::array<float, kPiece> from;
  const std::int64_t elements = target.element_count();
  for (std::int64_t begin = 0; begin < elements; begin += kPiece) {
    const std::int64_t count = std::min(kPiece, elements - begin);
    const auto piece = static_cast<std::size_t>(count);
    std::byte* const place = target.data + begin * SizeOf(target.dtype);
    compute::Widen(place, target.dtype, to.data(), count);
    compute::Widen(source.data + begin * SizeOf(source.dtype), source.dtype, from.data(), count);
    ReduceAs<float>(op, compute::HostView(std::span(to).first(piece)),
                    compute::HostView(std::span(from).first(piece)));
    compute::Narrow(to.data(), target.dtype, place, count);
  }
}

}  // namespace

void CpuReducer::Reduce(ReduceOp op, compute::TensorView target, compute::TensorView source,
                        DoneFn done) {
  RANKLAB_CHECK(target.dtype == source.dtype && target.element_count() == source.element_count(),
                "%d elements into %d", source.element_count(), target.element_count());
  switch (target.dtype) {
    case DType::kFloat32:
      ReduceAs<float>(op, target, source);
      return done(absl::OkStatus());
    case DType::kInt32:
      ReduceAs<std::int32_t>(op, target, source);
      return done(absl::OkStatus());
    case DType::kBFloat16:
    case DType::kFloat16:
      ReduceRounded(op, target, source);
      return done(absl::OkStatus());
  }
}

}  // namespace ranklab::collectives
