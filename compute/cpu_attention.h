// Causal attention of one head of one sample on the CPU, in tiles of queries: a tile sees no keys
// after its own last one, so that nearly half of the work of a full score matrix is not done.
#pragma once

#include <cstdint>
#include <vector>

#include <absl/status/status.h>

namespace ranklab::compute {

struct AttentionShape {
  std::int64_t length = 0;
  std::int64_t hidden = 0;  // of all heads
  std::int64_t heads = 0;

  std::int64_t head_width() const { return hidden / heads; }
};

// Where a head's part of one sample lies: q, k, v (length, head_width) within rows of 3 hidden, out
// within rows of hidden, log_sums (length).
struct HeadPlace {
  float* qkv = nullptr;  // of q; k and v are hidden and 2 hidden behind it
  float* out = nullptr;
  float* log_sums = nullptr;
};
HeadPlace PlaceOf(const AttentionShape& shape, std::int64_t sample, std::int64_t head, float* qkv,
                  float* out, float* log_sums);

// `scratch` is kept between calls of one thread. Errors: Internal, the library failed.
absl::Status AttentionOfHead(const AttentionShape& shape, const HeadPlace& head,
                             std::vector<float>& scratch);

// `gradients` has dqkv and dout in the place of qkv and out; dqkv is overwritten.
absl::Status AttentionBackwardOfHead(const AttentionShape& shape, const HeadPlace& head,
                                     const HeadPlace& gradients, std::vector<float>& scratch);

}  // namespace ranklab::compute
