// Wherever CUDA's toolkit built this, its cuBLASLt has every function that is called.
#include <gtest/gtest.h>

#include "compute/cuda/matrix_product.h"
#include "core/status.h"

namespace ranklab::compute::cuda {
namespace {

TEST(CublasLt, IsLoadedWithEveryFunctionThatIsCalled) {
  const absl::Status found = FindCublasLt();
  EXPECT_TRUE(found.ok()) << MessageOf(found);
}

}  // namespace
}  // namespace ranklab::compute::cuda
