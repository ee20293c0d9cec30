// Tensors of a device, what they hold in double precision, and how near that has to be.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "compute/operations.h"
#include "core/random.h"
#include "core/status.h"
#include "tests/compute/cuda/device_under_test.h"
#include "tests/compute/reference_operations.h"

namespace ranklab::compute::cuda {

using reference::Doubles;
using Shape = std::array<std::int64_t, 4>;

struct Tensor {
  std::unique_ptr<Buffer> buffer;
  TensorView view;
};

// Beyond what float32 loses over some hundred additions: one rounding of the result.
inline double ToleranceOf(DType dtype) {
  constexpr double kSums = 2e-5;
  return kSums + (dtype == DType::kBFloat16  ? 1.0 / 256
                  : dtype == DType::kFloat16 ? 1.0 / 2048
                                             : 0);
}

class OnDevice : public testing::Test {
 protected:
  void SetUp() override {
    const auto device = DeviceUnderTest();
    if (!device.ok()) {
      GTEST_SKIP() << MessageOf(device.status());
    }
    device_ = *device;
  }

  // `begin`: elements into its buffer, to be tried at addresses that vectors do not fit.
  Tensor Undefined(const Shape& shape, DType dtype, std::int64_t begin = 0) {
    TensorView view{.dtype = dtype, .shape = shape};
    auto buffer = device_->Allocate(view.byte_count() + begin * SizeOf(dtype), MemoryKind::kData);
    EXPECT_TRUE(buffer.ok()) << MessageOf(buffer.status());
    view = ViewOf(**buffer, dtype, shape, begin);
    return {std::move(*buffer), view};
  }

  void Put(const Tensor& tensor, std::vector<float> values) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.view.byte_count()));
    const TensorView host{bytes.data(), tensor.view.dtype, tensor.view.shape, nullptr};
    ASSERT_TRUE(compute::Convert(Reshape(HostView(std::span(values)), host.shape), host).ok());
    ASSERT_TRUE(CopyFromHost(host, tensor.view).ok());
  }

  Tensor Holding(const std::vector<float>& values, const Shape& shape, DType dtype,
                 std::int64_t begin = 0) {
    Tensor tensor = Undefined(shape, dtype, begin);
    Put(tensor, values);
    return tensor;
  }

  Tensor Normal(const Shape& shape, DType dtype, std::int64_t begin = 0) {
    Tensor tensor = Undefined(shape, dtype, begin);
    std::vector<float> values(static_cast<std::size_t>(tensor.view.element_count()));
    for (float& value : values) {
      value = static_cast<float>(random_.Normal());
    }
    Put(tensor, values);
    return tensor;
  }

  // What an operation promises to overwrite.
  Tensor Poisoned(const Shape& shape, DType dtype, std::int64_t begin = 0) {
    Tensor tensor = Undefined(shape, dtype, begin);
    Put(tensor, std::vector<float>(static_cast<std::size_t>(tensor.view.element_count()),
                                   std::numeric_limits<float>::quiet_NaN()));
    return tensor;
  }

  Tensor Integers(std::vector<std::int32_t> values, const Shape& shape) {
    Tensor tensor = Undefined(shape, DType::kInt32);
    EXPECT_TRUE(CopyFromHost(HostView(std::span(values)), tensor.view).ok());
    return tensor;
  }

  Doubles Back(const Tensor& tensor) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.view.byte_count()));
    std::vector<float> values(static_cast<std::size_t>(tensor.view.element_count()));
    const TensorView host{bytes.data(), tensor.view.dtype, tensor.view.shape, nullptr};
    EXPECT_TRUE(CopyToHost(tensor.view, host).ok());
    EXPECT_TRUE(compute::Convert(host, Reshape(HostView(std::span(values)), host.shape)).ok());
    return {values.begin(), values.end()};
  }

  void ExpectHolds(const Tensor& tensor, const Doubles& expected) {
    const Doubles found = Back(tensor);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      ASSERT_NEAR(found[i], expected[i],
                  ToleranceOf(tensor.view.dtype) * std::max(1.0, std::abs(expected[i])))
          << "element " << i;
    }
  }

  Device* device_ = nullptr;
  Random random_{11};
};

}  // namespace ranklab::compute::cuda
