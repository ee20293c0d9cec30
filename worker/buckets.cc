#include "worker/buckets.h"

#include "core/check.h"
#include "worker/precision.h"

namespace ranklab::worker {
namespace {

constexpr Bytes kElement = 4;  // float32

}  // namespace

BucketOptions BucketsOf(const experiment::LabSpec& spec) {
  return {.first = spec.exchange.first_bucket, .other = spec.exchange.bucket, .wire = WireOf(spec)};
}

std::vector<Bucket> CutBuckets(Model& model, const BucketOptions& options) {
  RANKLAB_CHECK(options.first > 0 && options.other > 0);
  std::vector<Bucket> buckets;
  std::int64_t end = model.parameter_count();
  for (int layer = model.layer_count() - 1; layer >= 0; --layer) {
    const std::int64_t begin = model.ParameterBegin(layer);
    const Bytes size = buckets.empty() ? options.first : options.other;
    if ((end - begin) * kElement < size && layer > 0) {
      continue;
    }
    Bucket bucket;
    bucket.index = static_cast<int>(buckets.size());
    bucket.last_layer = layer;
    bucket.begin = begin;
    bucket.end = end;
    bucket.gradients = compute::Slice(model.gradients(), begin, end);
    bucket.parameters = compute::Slice(model.parameters(), begin, end);
    bucket.sent = bucket.gradients;
    bucket.sent.dtype = options.wire;
    buckets.push_back(bucket);
    end = begin;
  }
  return buckets;
}

}  // namespace ranklab::worker
