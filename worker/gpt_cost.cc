// What a gpt's layers cost on a GPU; see gpt.h for what is fused.
#include "worker/gpt.h"

namespace ranklab::worker {
namespace {

using compute::CostOfElementwise;
using compute::CostOfMatMul;
using fabric::Operation;

constexpr double kFloat = 4.0;  // bytes

// What an epilogue touches beyond the product's own matrices.
Operation With(Operation product, std::int64_t floats) {
  product.bytes += kFloat * static_cast<double>(floats);
  return product;
}

// `products` of queries and keys, or weights and values, over the half of the scores that is seen;
// `tensors` (rows, hidden) are read or written.
Operation AttentionOf(std::int64_t rows, std::int64_t context, std::int64_t hidden, int products,
                      int tensors) {
  const auto elements = static_cast<double>(rows * hidden);
  return {.flops = products * elements * static_cast<double>(context),
          .bytes = kFloat * tensors * elements};
}

struct BlockShape {
  std::int64_t rows, context, hidden, expanded;
};

std::vector<Operation> ForwardOf(const BlockShape& s) {
  const std::int64_t narrow = s.rows * s.hidden;
  return {CostOfElementwise(narrow, /*reads=*/1, /*writes=*/1),
          With(CostOfMatMul(s.rows, s.hidden, 3 * s.hidden), 3 * s.hidden),
          AttentionOf(s.rows, s.context, s.hidden, /*products=*/2, /*tensors=*/4),
          With(CostOfMatMul(s.rows, s.hidden, s.hidden), s.hidden + narrow),
          CostOfElementwise(narrow, /*reads=*/1, /*writes=*/1),
          With(CostOfMatMul(s.rows, s.hidden, s.expanded), s.expanded + s.rows * s.expanded),
          With(CostOfMatMul(s.rows, s.expanded, s.hidden), s.hidden + narrow)};
}

// Of y = x W^T + b: the gradient of W with that of b, and that of x.
void AddBackwardOf(std::int64_t rows, std::int64_t inputs, std::int64_t outputs,
                   std::vector<Operation>& operations) {
  operations.push_back(With(CostOfMatMul(outputs, rows, inputs), outputs));
  operations.push_back(CostOfMatMul(rows, outputs, inputs));
}

std::vector<Operation> BackwardOf(const BlockShape& s) {
  const std::int64_t narrow = s.rows * s.hidden;
  std::vector<Operation> operations;
  AddBackwardOf(s.rows, s.expanded, s.hidden, operations);
  operations.back() = With(operations.back(), s.rows * s.expanded);  // GELU's, in the epilogue
  AddBackwardOf(s.rows, s.hidden, s.expanded, operations);
  operations.push_back(CostOfElementwise(narrow, /*reads=*/3, /*writes=*/1));
  AddBackwardOf(s.rows, s.hidden, s.hidden, operations);
  operations.push_back(AttentionOf(s.rows, s.context, s.hidden, /*products=*/5, /*tensors=*/8));
  AddBackwardOf(s.rows, s.hidden, 3 * s.hidden, operations);
  operations.push_back(CostOfElementwise(narrow, /*reads=*/3, /*writes=*/1));
  return operations;
}

}  // namespace

LayerCost Gpt::CostOf(int layer, std::int64_t samples) const {
  const BlockShape s{.rows = samples * options_.shape.spec.context,
                     .context = options_.shape.spec.context,
                     .hidden = hidden(),
                     .expanded = options_.shape.expanded()};
  const std::int64_t narrow = s.rows * s.hidden;
  const std::int64_t vocabulary = options_.shape.vocabulary;
  LayerCost cost;
  if (layer == 0) {  // two tables in, one stream out; and back
    cost.forward = {CostOfElementwise(narrow, /*reads=*/2, /*writes=*/1)};
    cost.backward = {CostOfElementwise(2 * narrow, /*reads=*/2, /*writes=*/1)};
  } else if (layer + 1 == layer_count()) {
    cost.forward = {CostOfElementwise(narrow, /*reads=*/1, /*writes=*/1),
                    CostOfMatMul(s.rows, s.hidden, vocabulary),
                    CostOfElementwise(s.rows * vocabulary, /*reads=*/1, /*writes=*/1)};
    cost.backward = {CostOfMatMul(vocabulary, s.rows, s.hidden),
                     CostOfMatMul(s.rows, vocabulary, s.hidden),
                     CostOfElementwise(narrow, /*reads=*/2, /*writes=*/1)};
  } else {
    cost.forward = ForwardOf(s);
    cost.backward = BackwardOf(s);
    if (options_.recompute) {  // all but the last product
      cost.backward.insert(cost.backward.begin(), cost.forward.begin(), cost.forward.end() - 1);
    }
  }
  return cost;
}

}  // namespace ranklab::worker
