#include "collectives/nccl/api.h"

namespace ranklab::collectives::nccl {

std::string_view NameOf(Result result) {
  switch (result) {
    case Result::kSuccess:
      return "ncclSuccess";
    case Result::kUnhandledCudaError:
      return "ncclUnhandledCudaError";
    case Result::kSystemError:
      return "ncclSystemError";
    case Result::kInternalError:
      return "ncclInternalError";
    case Result::kInvalidArgument:
      return "ncclInvalidArgument";
    case Result::kInvalidUsage:
      return "ncclInvalidUsage";
    case Result::kRemoteError:
      return "ncclRemoteError";
    case Result::kInProgress:
      return "ncclInProgress";
  }
  return "an unknown ncclResult_t";
}

}  // namespace ranklab::collectives::nccl
