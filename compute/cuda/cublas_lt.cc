#include "compute/cuda/cublas_lt.h"

#include <string>

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include "core/status.h"

namespace ranklab::compute::cuda {
namespace {

template <typename F>
absl::Status Find(void* library, const char* name, F*& function) {
  function = reinterpret_cast<F*>(dlsym(library, name));
  return function != nullptr ? absl::OkStatus()
                             : FailedPrecondition("device cuda: cuBLASLt has no %s", name);
}

}  // namespace

absl::StatusOr<CublasLt> LoadCublasLt() {
  const std::string name = absl::StrFormat("libcublasLt.so.%d", CUDART_VERSION / 1000);
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const std::string first_error = dlerror();
    // Where this program was built, the toolkit's own folder need not be among the system's.
    library = dlopen((RANKLAB_CUDA_LIBRARIES "/" + name).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      return FailedPrecondition(
          "device cuda: %s cannot be loaded (%s); install CUDA's libraries of this version and put "
          "their folder into LD_LIBRARY_PATH",
          name, first_error);
    }
  }
  CublasLt table;
  RETURN_IF_ERROR(Find(library, "cublasLtCreate", table.create));
  RETURN_IF_ERROR(Find(library, "cublasLtDestroy", table.destroy));
  RETURN_IF_ERROR(Find(library, "cublasLtGetStatusString", table.status_string));
  RETURN_IF_ERROR(Find(library, "cublasLtMatmulDescCreate", table.desc_create));
  RETURN_IF_ERROR(Find(library, "cublasLtMatmulDescDestroy", table.desc_destroy));
  RETURN_IF_ERROR(Find(library, "cublasLtMatmulDescSetAttribute", table.desc_set));
  RETURN_IF_ERROR(Find(library, "cublasLtMatrixLayoutCreate", table.layout_create));
  RETURN_IF_ERROR(Find(library, "cublasLtMatrixLayoutDestroy", table.layout_destroy));
  RETURN_IF_ERROR(Find(library, "cublasLtMatmulPreferenceCreate", table.preference_create));
  RETURN_IF_ERROR(Find(library, "cublasLtMatmulPreferenceDestroy", table.preference_destroy));
  RETURN_IF_ERROR(Find(library, "cublasLtMatmulPreferenceSetAttribute", table.preference_set));
  RETURN_IF_ERROR(Find(library, "cublasLtMatmulAlgoGetHeuristic", table.heuristic));
  RETURN_IF_ERROR(Find(library, "cublasLtMatmul", table.matmul));
  return table;
}

}  // namespace ranklab::compute::cuda
