// Cuts a model's gradients into buckets, in the order in which the backward pass completes them.
// Source: Li et al., "PyTorch distributed: experiences on accelerating data parallel training",
// VLDB 2020: 25 MiB, a smaller first one so that communication begins early.
#pragma once

#include <vector>

#include "worker/gradient_exchange.h"
#include "worker/model.h"

namespace ranklab::worker {

struct BucketOptions {
  Bytes first = 1 << 20;  // of gradients in float32, whatever the wire's dtype
  Bytes other = 25 << 20;
  compute::DType wire = compute::DType::kFloat32;
};
BucketOptions BucketsOf(const experiment::LabSpec& spec);

// What travels lies in the gradients' own memory; a narrower dtype wants another (WireGradients).
// Whole layers, last layer first; a bucket is closed by the layer that makes it reach its size, so
// that a layer larger than a bucket is a bucket of its own. Covers every parameter exactly once.
std::vector<Bucket> CutBuckets(Model& model, const BucketOptions& options);

}  // namespace ranklab::worker
