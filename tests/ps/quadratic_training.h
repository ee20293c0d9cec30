// Training whose every bit is known: workers that pull, compute the gradients of a quadratic and
// push them, and the same arithmetic written out serially.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "compute/optimizer.h"
#include "core/random.h"
#include "tests/ps/ps_cluster.h"

namespace ranklab::ps {

constexpr int kWorkers = 4;
constexpr int kSteps = 12;
constexpr std::int64_t kElements = 37;
constexpr std::int64_t kRate = 32;  // learning rate 1 / 32
using Values = std::vector<float>;

// Worker r has r + 1 points; the loss is the sum over all points of |w - point|^2 / 2.
inline std::vector<std::vector<Values>> MakePoints(std::uint64_t seed) {
  Random random(seed);
  std::vector<std::vector<Values>> points(kWorkers);
  for (std::size_t worker = 0; worker < kWorkers; ++worker) {
    points[worker].resize(worker + 1, Values(kElements));
    for (Values& point : points[worker]) {
      for (float& x : point) {
        x = static_cast<float>(random.Normal());
      }
    }
  }
  return points;
}

inline Values SumOfGradients(const std::vector<Values>& points, const Values& parameters) {
  Values sum(kElements, 0.0F);
  for (const Values& point : points) {
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] += parameters[i] - point[i];
    }
  }
  return sum;
}

class QuadraticWorker {
 public:
  QuadraticWorker(Client& client, std::vector<Values> points)
      : client_(client), points_(std::move(points)), parameters_(kElements) {}

  void Pull(Step step) {
    client_.Pull(step, {0, kElements}, parameters_.data(),
                 [this, step](const absl::StatusOr<Pulled>& pulled) {
                   ASSERT_TRUE(pulled.ok()) << pulled.status().ToString();
                   if (step <= kSteps) {
                     Push(step);
                   } else {
                     finished_ = true;
                   }
                 });
  }

  const Values& parameters() const { return parameters_; }
  bool finished() const { return finished_; }

 private:
  void Push(Step step) {
    gradients_ = SumOfGradients(points_, parameters_);
    // The end follows once both parts are counted, whatever order the network keeps.
    const auto pushed = [this, step, open = std::make_shared<int>(2)](const absl::Status& status) {
      ASSERT_TRUE(status.ok()) << status.ToString();
      if (--*open == 0) {
        client_.EndStep(
            step, {.weight = static_cast<double>(points_.size())},
            [](const absl::Status& ended) { ASSERT_TRUE(ended.ok()) << ended.ToString(); });
        Pull(step + 1);
      }
    };
    client_.Push(step, {20, kElements}, gradients_.data() + 20, pushed);
    client_.Push(step, {0, 20}, gradients_.data(), pushed);
  }

  Client& client_;
  std::vector<Values> points_;
  Values parameters_;
  Values gradients_;
  bool finished_ = false;
};

inline OptimizerFactory MomentumFactory(compute::Device& device) {
  return [&device] {
    return compute::MakeOptimizer(
        {.name = "momentum", .learning_rate = {.peak = 1.0 / kRate}, .momentum = 0.75}, device);
  };
}

// The left fold in rank order, then one optimizer over the whole model.
inline Values TrainSerially(bool fold_by_worker) {
  compute::CpuDevice device({});
  auto optimizer = MomentumFactory(device)();
  EXPECT_TRUE(optimizer.ok());
  auto memory =
      device.Allocate(2 * kElements * Bytes{sizeof(float)}, compute::MemoryKind::kWeights);
  EXPECT_TRUE(memory.ok());
  const auto view = [&](std::int64_t begin) {
    return compute::ViewOf(**memory, compute::DType::kFloat32, {kElements, 1, 1, 1}, begin);
  };
  auto* parameters = reinterpret_cast<float*>(view(0).data);
  auto* sum = reinterpret_cast<float*>(view(kElements).data);
  std::fill_n(parameters, kElements, 0.5F);
  const auto points = MakePoints(7);
  double weight = 0;
  std::vector<Values> all;
  for (const auto& of_worker : points) {
    weight += static_cast<double>(of_worker.size());
    all.insert(all.end(), of_worker.begin(), of_worker.end());
  }
  for (int step = 1; step <= kSteps; ++step) {
    const Values now(parameters, parameters + kElements);
    Values total = SumOfGradients(fold_by_worker ? points.front() : all, now);
    for (std::size_t worker = 1; fold_by_worker && worker < kWorkers; ++worker) {
      const Values gradients = SumOfGradients(points[worker], now);
      for (std::size_t i = 0; i < total.size(); ++i) {
        total[i] += gradients[i];
      }
    }
    std::copy(total.begin(), total.end(), sum);
    EXPECT_TRUE((*optimizer)->Apply(view(0), view(kElements), 1.0 / weight).ok());
  }
  return {parameters, parameters + kElements};
}

inline bool SameBits(const Values& a, const Values& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace ranklab::ps
