#include "worker/synthetic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "core/random.h"
#include "core/status.h"
#include "worker/streams.h"

namespace ranklab::worker {
namespace {

constexpr std::int64_t kMaxValues = std::int64_t{1} << 30;  // 4 GiB of inputs
constexpr int kMaxClasses = 1 << 16;

class Teacher {
 public:
  Teacher(int inputs, int classes, Random random) : inputs_(inputs), classes_(classes) {
    const auto draw = [&random](std::vector<double>& weights, int rows, int columns) {
      const double scale = 1.0 / std::sqrt(static_cast<double>(columns));
      weights.resize(static_cast<std::size_t>(rows) * columns);
      std::generate(weights.begin(), weights.end(), [&] { return random.Normal() * scale; });
    };
    draw(hidden_, kTeacherWidth, inputs);
    draw(output_, classes, kTeacherWidth);
  }

  std::int32_t LabelOf(std::span<const float> x) const {
    std::array<double, kTeacherWidth> hidden{};
    double mean = 0;
    for (int h = 0; h < kTeacherWidth; ++h) {
      double sum = 0;
      for (int i = 0; i < inputs_; ++i) {
        sum += hidden_[static_cast<std::size_t>(h) * inputs_ + i] * x[i];
      }
      hidden[h] = std::max(0.0, sum);
      mean += hidden[h] / kTeacherWidth;
    }
    std::int32_t best = 0;
    double highest = -INFINITY;
    for (int c = 0; c < classes_; ++c) {
      double score = 0;
      for (int h = 0; h < kTeacherWidth; ++h) {
        // Around their mean, or the ReLUs' common part would make one class win everywhere.
        score += output_[static_cast<std::size_t>(c) * kTeacherWidth + h] * (hidden[h] - mean);
      }
      if (score > highest) {
        highest = score;
        best = c;
      }
    }
    return best;
  }

 private:
  int inputs_;
  int classes_;
  std::vector<double> hidden_;  // (kTeacherWidth, inputs)
  std::vector<double> output_;  // (classes, kTeacherWidth)
};

Split Draw(std::int64_t samples, int inputs, const Teacher& teacher, Random& random) {
  Split split;
  split.inputs.resize(static_cast<std::size_t>(samples * inputs));
  split.labels.reserve(static_cast<std::size_t>(samples));
  for (std::int64_t i = 0; i < samples; ++i) {
    const std::span<float> x = std::span(split.inputs).subspan(i * inputs, inputs);
    std::generate(x.begin(), x.end(), [&random] { return static_cast<float>(random.Normal()); });
    split.labels.push_back(teacher.LabelOf(x));
  }
  return split;
}

}  // namespace

absl::StatusOr<Dataset> MakeSynthetic(const experiment::DataSpec& spec) {
  if (spec.inputs < 1 || spec.samples < 1 || spec.samples > kMaxValues / spec.inputs) {
    return InvalidArgument(
        "synthetic data of %d samples x %d inputs; at least 1 x 1 and at most %d values",
        spec.samples, spec.inputs, kMaxValues);
  }
  if (spec.classes < 2 || spec.classes > kMaxClasses) {
    return InvalidArgument("synthetic data of %d classes; from 2 to %d", spec.classes, kMaxClasses);
  }
  const Teacher teacher(spec.inputs, spec.classes, StreamOf(spec.split_seed, Stream::kTeacher));
  Random random = StreamOf(spec.split_seed, Stream::kInputs);
  Dataset data{.inputs = spec.inputs, .classes = spec.classes, .train = {}, .test = {}};
  data.train = Draw(spec.samples, spec.inputs, teacher, random);
  data.test = Draw(std::max<std::int64_t>(1, spec.samples / 4), spec.inputs, teacher, random);
  return data;
}

}  // namespace ranklab::worker
