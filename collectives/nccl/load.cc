#include "collectives/nccl/load.h"

#include "core/status.h"

#ifdef RANKLAB_NCCL

#include <algorithm>
#include <string>
#include <type_traits>

#include <dlfcn.h>
#include <nccl.h>

namespace ranklab::collectives::nccl {
namespace {

static_assert(static_cast<int>(Result::kUnhandledCudaError) == ncclUnhandledCudaError);
static_assert(static_cast<int>(Result::kSystemError) == ncclSystemError);
static_assert(static_cast<int>(Result::kInternalError) == ncclInternalError);
static_assert(static_cast<int>(Result::kInvalidArgument) == ncclInvalidArgument);
static_assert(static_cast<int>(Result::kInvalidUsage) == ncclInvalidUsage);
static_assert(static_cast<int>(Result::kRemoteError) == ncclRemoteError);
static_assert(static_cast<int>(Result::kInProgress) == ncclInProgress);
static_assert(sizeof(UniqueId) == sizeof(ncclUniqueId));

// The name the loader knows, then where CUDA's own installer leaves it.
constexpr const char* kPlaces[] = {"libnccl.so.2", "/usr/local/cuda/lib64/libnccl.so.2"};

struct Functions {
#define RANKLAB_NCCL_FUNCTIONS(X)                                                           \
  X(ncclGetVersion)                                                                         \
  X(ncclGetUniqueId)                                                                        \
  X(ncclCommInitRankConfig)                                                                 \
  X(ncclCommGetAsyncError)                                                                  \
  X(ncclGetLastError)                                                                       \
  X(ncclCommCount)                                                                          \
  X(ncclCommUserRank)                                                                       \
  X(ncclAllReduce)                                                                          \
  X(ncclReduceScatter)                                                                      \
  X(ncclAllGather)                                                                          \
  X(ncclBroadcast)                                                                          \
  X(ncclReduce)                                                                             \
  X(ncclSend)                                                                               \
  X(ncclRecv)                                                                               \
  X(ncclGroupStart) X(ncclGroupEnd) X(ncclCommFinalize) X(ncclCommDestroy) X(ncclCommAbort) \
      X(ncclCommShrink)
#define RANKLAB_DECLARE(name) std::add_pointer_t<decltype(::name)> name = nullptr;
  RANKLAB_NCCL_FUNCTIONS(RANKLAB_DECLARE)
#undef RANKLAB_DECLARE
};

ncclDataType_t ToNccl(compute::DType dtype) {
  switch (dtype) {
    case compute::DType::kFloat32:
      return ncclFloat32;
    case compute::DType::kBFloat16:
      return ncclBfloat16;
    case compute::DType::kFloat16:
      return ncclFloat16;
    case compute::DType::kInt32:
      return ncclInt32;
  }
  return ncclNumTypes;
}

ncclRedOp_t ToNccl(compute::ReduceOp op) {
  switch (op) {
    case compute::ReduceOp::kSum:
      return ncclSum;
    case compute::ReduceOp::kMax:
      return ncclMax;
    case compute::ReduceOp::kMin:
      return ncclMin;
  }
  return ncclNumOps;
}

ncclConfig_t NonBlocking() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

ncclComm_t Of(Comm comm) { return static_cast<ncclComm_t>(comm); }
cudaStream_t OfStream(Stream stream) { return static_cast<cudaStream_t>(stream); }
Result From(ncclResult_t result) { return static_cast<Result>(result); }

class LoadedApi final : public Api {
 public:
  LoadedApi(const Functions& functions, int version) : f_(functions), version_(version) {}

  int version() const override { return version_; }

  Result MakeUniqueId(UniqueId& id) override {
    ncclUniqueId made;
    const Result result = From(f_.ncclGetUniqueId(&made));
    std::copy_n(made.internal, id.bytes.size(), id.bytes.begin());
    return result;
  }

  Result Init(Comm& comm, int ranks, const UniqueId& id, Rank rank) override {
    ncclUniqueId theirs;
    std::copy(id.bytes.begin(), id.bytes.end(), theirs.internal);
    ncclConfig_t config = NonBlocking();
    ncclComm_t made = nullptr;
    const Result result = From(f_.ncclCommInitRankConfig(&made, ranks, theirs, rank, &config));
    comm = made;
    return result;
  }

  Result AsyncError(Comm comm, Result& state) override {
    ncclResult_t theirs = ncclSuccess;
    const Result result = From(f_.ncclCommGetAsyncError(Of(comm), &theirs));
    state = From(theirs);
    return result;
  }

  std::string LastError(Comm comm) override {
    const char* text = f_.ncclGetLastError(Of(comm));
    return text == nullptr ? "" : text;
  }

  Result Shape(Comm comm, int& ranks, Rank& rank) override {
    const Result counted = From(f_.ncclCommCount(Of(comm), &ranks));
    return counted != Result::kSuccess ? counted : From(f_.ncclCommUserRank(Of(comm), &rank));
  }

  Result AllReduce(const Transfer& t, compute::ReduceOp op, Comm comm, Stream stream) override {
    return From(f_.ncclAllReduce(t.send, t.receive, Count(t), ToNccl(t.dtype), ToNccl(op), Of(comm),
                                 OfStream(stream)));
  }

  Result ReduceScatter(const Transfer& t, compute::ReduceOp op, Comm comm, Stream stream) override {
    return From(f_.ncclReduceScatter(t.send, t.receive, Count(t), ToNccl(t.dtype), ToNccl(op),
                                     Of(comm), OfStream(stream)));
  }

  Result AllGather(const Transfer& t, Comm comm, Stream stream) override {
    return From(
        f_.ncclAllGather(t.send, t.receive, Count(t), ToNccl(t.dtype), Of(comm), OfStream(stream)));
  }

  Result Broadcast(const Transfer& t, Rank root, Comm comm, Stream stream) override {
    return From(f_.ncclBroadcast(t.send, t.receive, Count(t), ToNccl(t.dtype), root, Of(comm),
                                 OfStream(stream)));
  }

  Result Reduce(const Transfer& t, compute::ReduceOp op, Rank root, Comm comm,
                Stream stream) override {
    return From(f_.ncclReduce(t.send, t.receive, Count(t), ToNccl(t.dtype), ToNccl(op), root,
                              Of(comm), OfStream(stream)));
  }

  Result Send(const Transfer& t, Rank to, Comm comm, Stream stream) override {
    return From(f_.ncclSend(t.send, Count(t), ToNccl(t.dtype), to, Of(comm), OfStream(stream)));
  }

  Result Receive(const Transfer& t, Rank from, Comm comm, Stream stream) override {
    return From(
        f_.ncclRecv(t.receive, Count(t), ToNccl(t.dtype), from, Of(comm), OfStream(stream)));
  }

  Result GroupStart() override { return From(f_.ncclGroupStart()); }
  Result GroupEnd() override { return From(f_.ncclGroupEnd()); }
  Result Finalize(Comm comm) override { return From(f_.ncclCommFinalize(Of(comm))); }
  Result Destroy(Comm comm) override { return From(f_.ncclCommDestroy(Of(comm))); }
  Result Abort(Comm comm) override { return From(f_.ncclCommAbort(Of(comm))); }

  Result Shrink(Comm comm, std::span<Rank> lost, Comm& smaller) override {
    static_assert(sizeof(Comm) == sizeof(ncclComm_t) && sizeof(Rank) == sizeof(int));
    ncclConfig_t config = NonBlocking();
    return From(f_.ncclCommShrink(Of(comm), lost.data(), static_cast<int>(lost.size()),
                                  reinterpret_cast<ncclComm_t*>(&smaller), &config,
                                  NCCL_SHRINK_ABORT));
  }

 private:
  static std::size_t Count(const Transfer& transfer) {
    return static_cast<std::size_t>(transfer.count);
  }

  const Functions f_;
  const int version_;
};

absl::Status Resolve(void* library, Functions& functions) {
#define RANKLAB_RESOLVE(name)                                                                  \
  functions.name = reinterpret_cast<decltype(functions.name)>(dlsym(library, #name));          \
  if (functions.name == nullptr) {                                                             \
    return NotFound("this machine's libnccl.so.2 has no %s; NCCL 2.27.3 or newer has", #name); \
  }
  RANKLAB_NCCL_FUNCTIONS(RANKLAB_RESOLVE)
#undef RANKLAB_RESOLVE
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Api>> Load() {
  void* library = nullptr;
  std::string why;
  for (const char* place : kPlaces) {
    // Never closed: NCCL leaves threads behind.
    library = dlopen(place, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) {
      break;
    }
    why += absl::StrFormat("%s%s", why.empty() ? "" : "; ", dlerror());
  }
  if (library == nullptr) {
    return NotFound("NCCL is not on this machine (%s); install libnccl2", why);
  }
  Functions functions;
  RETURN_IF_ERROR(Resolve(library, functions));
  int version = 0;
  if (const ncclResult_t result = functions.ncclGetVersion(&version); result != ncclSuccess) {
    return NotFound("this machine's libnccl.so.2 does not tell its version: %s",
                    NameOf(From(result)));
  }
  return std::make_unique<LoadedApi>(functions, version);
}

}  // namespace ranklab::collectives::nccl

#else

namespace ranklab::collectives::nccl {

absl::StatusOr<std::unique_ptr<Api>> Load() {
  return Unimplemented(
      "this build has no NCCL: nccl.h or CUDA's headers were not found when it was configured");
}

}  // namespace ranklab::collectives::nccl

#endif
