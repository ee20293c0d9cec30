#include "worker/buckets.h"

#include <gtest/gtest.h>

#include "compute/device.h"

namespace ranklab::worker {
namespace {

std::unique_ptr<Model> MakeMlp(compute::Device& device, std::vector<int> layers) {
  experiment::LabSpec spec;
  spec.model = experiment::MlpSpec{layers};
  auto model = MakeModel(spec, device, 4, layers.front(), layers.back());
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

TEST(Buckets, CoverEveryParameterOnceInReverseOrder) {
  compute::CpuDevice device({});
  const auto model = MakeMlp(device, {8, 300, 200, 100, 10});
  for (const Bytes size : {Bytes{1}, Bytes{1} << 10, Bytes{100} << 10, Bytes{1} << 30}) {
    const auto buckets = CutBuckets(*model, {.first = size, .other = size});
    std::int64_t end = model->parameter_count();
    int layer = model->layer_count();
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      EXPECT_EQ(buckets[i].index, static_cast<int>(i));
      EXPECT_EQ(buckets[i].end, end);
      EXPECT_LT(buckets[i].last_layer, layer);
      EXPECT_EQ(buckets[i].gradients.element_count(), buckets[i].end - buckets[i].begin);
      end = buckets[i].begin;
      layer = buckets[i].last_layer;
    }
    EXPECT_EQ(end, 0) << "bucket size " << size;
    EXPECT_EQ(layer, 0);
  }
}

TEST(Buckets, TheFirstHasASizeOfItsOwn) {
  compute::CpuDevice device({});
  const auto model = MakeMlp(device, {64, 64, 64, 10});
  const auto buckets = CutBuckets(*model, {.first = 1, .other = Bytes{1} << 30});
  ASSERT_EQ(buckets.size(), 2U);
  EXPECT_EQ(buckets[0].last_layer, 2);
  EXPECT_EQ(buckets[1].last_layer, 0);
}

}  // namespace
}  // namespace ranklab::worker
