#include "compute/cuda/matrix_product.h"

#include <map>
#include <tuple>
#include <utility>

#include "compute/cuda/cublas_lt.h"
#include "compute/cuda/scratch.h"
#include "core/check.h"
#include "core/status.h"

namespace ranklab::compute::cuda {
namespace {

// What NVIDIA recommends for Hopper; older ones want less. Source: cuBLAS documentation,
// cublasSetWorkspace.
constexpr Bytes kWorkspace = 32 << 20;

cudaDataType_t TypeOf(DType dtype) {
  RANKLAB_CHECK(dtype != DType::kInt32);
  return dtype == DType::kFloat32    ? CUDA_R_32F
         : dtype == DType::kBFloat16 ? CUDA_R_16BF
                                     : CUDA_R_16F;
}

// The largest power of two that divides the address, up to what cuBLASLt makes use of.
std::uint32_t AlignmentOf(const TensorView& view) {
  constexpr std::uintptr_t kMost = 256;
  const auto address = reinterpret_cast<std::uintptr_t>(view.data) | kMost;
  return static_cast<std::uint32_t>(address & (~address + 1));
}

// What decides how a product is computed.
struct ProductKey {
  std::int64_t m, k, n;
  bool transpose_a, transpose_b, adds;
  DType a, b, c;
  std::uint32_t align_a, align_b, align_c;

  auto operator<=>(const ProductKey&) const = default;
};

// Handles of one product, and the algorithm that cuBLASLt's heuristic puts first.
class Plan {
 public:
  explicit Plan(const CublasLt& library) : library_(library) {}
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() {
    for (cublasLtMatrixLayout_t layout : {a, b, c}) {
      if (layout != nullptr) {
        library_.layout_destroy(layout);
      }
    }
    if (desc != nullptr) {
      library_.desc_destroy(desc);
    }
    if (preference != nullptr) {
      library_.preference_destroy(preference);
    }
  }

  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtMatmulHeuristicResult_t found{};

 private:
  const CublasLt& library_;
};

// cuBLASLt stores columns: a row-major (m, n) is its (n, m). So it is asked for c^T = op(b)^T
// op(a)^T, whose first factor is b and second a, both as they are stored.
class CublasLtProducts final : public MatrixProducts {
 public:
  CublasLtProducts(const CublasLt& library, const ProductOptions& options)
      : library_(library), options_(options), workspace_(options.stream) {}
  CublasLtProducts(const CublasLtProducts&) = delete;
  CublasLtProducts& operator=(const CublasLtProducts&) = delete;

  ~CublasLtProducts() override {
    plans_.clear();
    if (handle_ != nullptr) {
      library_.destroy(handle_);
    }
  }

  absl::Status Begin() {
    RETURN_IF_ERROR(StatusOf(library_.create(&handle_)));
    return workspace_.Take(kWorkspace).status();
  }

  absl::Status Multiply(const MatMulShape& shape, const TensorView& a, const TensorView& b,
                        float beta, const TensorView& c) override {
    if (shape.m == 0 || shape.n == 0) {
      return absl::OkStatus();
    }
    if (a.dtype != b.dtype || (c.dtype != a.dtype && c.dtype != DType::kFloat32)) {
      return Unimplemented("a matrix product of these dtypes on a GPU");
    }
    const ProductKey key{.m = shape.m,
                         .k = shape.k,
                         .n = shape.n,
                         .transpose_a = shape.transpose_a,
                         .transpose_b = shape.transpose_b,
                         .adds = beta != 0.0F,
                         .a = a.dtype,
                         .b = b.dtype,
                         .c = c.dtype,
                         .align_a = AlignmentOf(a),
                         .align_b = AlignmentOf(b),
                         .align_c = AlignmentOf(c)};
    ASSIGN_OR_RETURN(const Plan* const plan, PlanOf(key));
    ASSIGN_OR_RETURN(void* const workspace, workspace_.Take(kWorkspace));
    const float alpha = 1.0F;
    return StatusOf(library_.matmul(handle_, plan->desc, &alpha, b.data, plan->b, a.data, plan->a,
                                    &beta, c.data, plan->c, c.data, plan->c, &plan->found.algo,
                                    workspace, kWorkspace,
                                    static_cast<cudaStream_t>(options_.stream)));
  }

 private:
  absl::Status StatusOf(cublasStatus_t status) const {
    return status == CUBLAS_STATUS_SUCCESS
               ? absl::OkStatus()
               : Internal("cuBLASLt: %s", library_.status_string(status));
  }

  absl::StatusOr<const Plan*> PlanOf(const ProductKey& key) {
    std::unique_ptr<Plan>& plan = plans_[key];
    if (plan == nullptr) {
      auto made = std::make_unique<Plan>(library_);
      RETURN_IF_ERROR(Describe(key, *made));
      RETURN_IF_ERROR(Prefer(key, *made));
      RETURN_IF_ERROR(Choose(key, *made));
      plan = std::move(made);
    }
    return plan.get();
  }

  absl::Status Describe(const ProductKey& key, Plan& plan) const {
    const bool tf32 = options_.tf32 && key.a == DType::kFloat32;
    RETURN_IF_ERROR(StatusOf(library_.desc_create(
        &plan.desc, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F)));
    const cublasOperation_t first = key.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t second = key.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    RETURN_IF_ERROR(
        StatusOf(library_.desc_set(plan.desc, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first)));
    RETURN_IF_ERROR(StatusOf(
        library_.desc_set(plan.desc, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second)));
    RETURN_IF_ERROR(
        Layout(plan.a, key.a, key.transpose_a ? key.k : key.m, key.transpose_a ? key.m : key.k));
    RETURN_IF_ERROR(
        Layout(plan.b, key.b, key.transpose_b ? key.n : key.k, key.transpose_b ? key.k : key.n));
    return Layout(plan.c, key.c, key.m, key.n);
  }

  // Of a row-major (rows, columns), dense.
  absl::Status Layout(cublasLtMatrixLayout_t& layout, DType dtype, std::int64_t rows,
                      std::int64_t columns) const {
    return StatusOf(library_.layout_create(&layout, TypeOf(dtype),
                                           static_cast<std::uint64_t>(columns),
                                           static_cast<std::uint64_t>(rows), columns));
  }

  // Without being told, cuBLASLt takes every address for a multiple of 256. Parts of a sum are
  // added in float32, so that 16-bit results are rounded once.
  absl::Status Prefer(const ProductKey& key, Plan& plan) const {
    RETURN_IF_ERROR(StatusOf(library_.preference_create(&plan.preference)));
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t name, const auto& value) {
      return StatusOf(library_.preference_set(plan.preference, name, &value, sizeof value));
    };
    const std::uint64_t workspace = kWorkspace;
    const std::uint32_t sums = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace));
    RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, sums));
    RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, key.align_b));
    RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, key.align_a));
    RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, key.align_c));
    return set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, key.align_c);
  }

  absl::Status Choose(const ProductKey& key, Plan& plan) const {
    int count = 0;
    RETURN_IF_ERROR(StatusOf(library_.heuristic(handle_, plan.desc, plan.b, plan.a, plan.c, plan.c,
                                                plan.preference, 1, &plan.found, &count)));
    if (count == 0) {
      return Internal("cuBLASLt has no algorithm for (%d, %d) x (%d, %d)", key.m, key.k, key.k,
                      key.n);
    }
    return absl::OkStatus();
  }

  const CublasLt library_;
  const ProductOptions options_;
  cublasLtHandle_t handle_ = nullptr;
  Scratch workspace_;
  std::map<ProductKey, std::unique_ptr<Plan>> plans_;
};

}  // namespace

absl::Status FindCublasLt() { return LoadCublasLt().status(); }

absl::StatusOr<std::unique_ptr<MatrixProducts>> MakeMatrixProducts(const ProductOptions& options) {
  ASSIGN_OR_RETURN(const CublasLt library, LoadCublasLt());
  auto products = std::make_unique<CublasLtProducts>(library, options);
  RETURN_IF_ERROR(products->Begin());
  return products;
}

}  // namespace ranklab::compute::cuda
