// Cuts a model's gradients into buckets, in the order in which the backward pass completes them.
// Source: Li et al., "PyTorch distributed: experiences on accelerating data parallel training",
// VLDB 2020: 25 MiB, a smaller first one so that communication begins early.
#pragma once

#include <vector>

#include "worker/gradient_exchange.h"
#include "worker/model.h"

namespace ranklab::worker {

struct BucketSizes {
  Bytes first = 1 << 20;
  Bytes other = 25 << 20;
};

// Whole layers, last layer first; a bucket is closed by the layer that makes it reach its size, so
// that a layer larger than a bucket is a bucket of its own. Covers every parameter exactly once.
std::vector<Bucket> CutBuckets(Model& model, const BucketSizes& sizes);

}  // namespace ranklab::worker
