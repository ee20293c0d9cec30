#include "collectives/cpu_reducer.h"

#include <cstdint>
#include <span>

#include "core/check.h"
#include "core/status.h"

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
      return done(Unimplemented("the CPU reducer does not reduce bfloat16; use float32 or int32"));
    case DType::kFloat16:
      return done(Unimplemented("the CPU reducer does not reduce float16; use float32 or int32"));
  }
}

}  // namespace ranklab::collectives
