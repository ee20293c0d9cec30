#include "worker/buckets.h"

#include "core/check.h"

namespace ranklab::worker {
namespace {

constexpr Bytes kElement = 4;  // float32

}  // namespace

std::vector<Bucket> CutBuckets(Model& model, const BucketSizes& sizes) {
  RANKLAB_CHECK(sizes.first > 0 && sizes.other > 0);
  std::vector<Bucket> buckets;
  std::int64_t end = model.parameter_count();
  for (int layer = model.layer_count() - 1; layer >= 0; --layer) {
    const std::int64_t begin = model.ParameterBegin(layer);
    const Bytes size = buckets.empty() ? sizes.first : sizes.other;
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
    buckets.push_back(bucket);
    end = begin;
  }
  return buckets;
}

}  // namespace ranklab::worker
