// The calls of NCCL that ranklab makes, as one table. The real one is loaded at run time
// (load.h); tests drive the communicator with one of their own.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "compute/tensor.h"
#include "core/units.h"

namespace ranklab::collectives::nccl {

// ncclResult_t, by value.
enum class Result : std::uint8_t {
  kSuccess,
  kUnhandledCudaError,
  kSystemError,
  kInternalError,
  kInvalidArgument,
  kInvalidUsage,
  kRemoteError,
  kInProgress,
};
std::string_view NameOf(Result result);  // "ncclRemoteError"

// What all ranks of a communicator must be given: made by one of them, passed on by other means.
struct UniqueId {
  std::array<char, 128> bytes{};
  bool operator==(const UniqueId&) const = default;
};

using Comm = void*;    // ncclComm_t
using Stream = void*;  // cudaStream_t

// What goes out and where what comes in lies, in memory of the device. Equal pointers: in place.
struct Transfer {
  const void* send = nullptr;
  void* receive = nullptr;
  std::int64_t count = 0;  // elements, as each call counts them
  compute::DType dtype = compute::DType::kFloat32;
};

// Not thread safe for one communicator. Every call may answer kInProgress: then only AsyncError and
// Abort are allowed until AsyncError says otherwise.
// Source: NVIDIA, NCCL 2.28 documentation, "NCCL API".
class Api {
 public:
  virtual ~Api() = default;

  virtual int version() const = 0;  // 22809 is 2.28.9

  virtual Result MakeUniqueId(UniqueId& id) = 0;
  // Not blocking: `comm` is set at once and usable when AsyncError says success. Takes the device
  // that is current for the calling thread.
  virtual Result Init(Comm& comm, int ranks, const UniqueId& id, Rank rank) = 0;
  virtual Result AsyncError(Comm comm, Result& state) = 0;
  virtual std::string LastError(Comm comm) = 0;  // a sentence of NCCL's, or empty
  virtual Result Shape(Comm comm, int& ranks, Rank& rank) = 0;

  // Queued on `stream`. `count`: of the whole buffer; but of one rank's block for reduce-scatter
  // (what is received) and all-gather (what is sent).
  virtual Result AllReduce(const Transfer& transfer, compute::ReduceOp op, Comm comm,
                           Stream stream) = 0;
  virtual Result ReduceScatter(const Transfer& transfer, compute::ReduceOp op, Comm comm,
                               Stream stream) = 0;
  virtual Result AllGather(const Transfer& transfer, Comm comm, Stream stream) = 0;
  virtual Result Broadcast(const Transfer& transfer, Rank root, Comm comm, Stream stream) = 0;
  virtual Result Reduce(const Transfer& transfer, compute::ReduceOp op, Rank root, Comm comm,
                        Stream stream) = 0;
  virtual Result Send(const Transfer& transfer, Rank to, Comm comm, Stream stream) = 0;
  virtual Result Receive(const Transfer& transfer, Rank from, Comm comm, Stream stream) = 0;

  virtual Result GroupStart() = 0;
  virtual Result GroupEnd() = 0;

  // What is queued is done, then nothing may be queued any more.
  virtual Result Finalize(Comm comm) = 0;
  virtual Result Destroy(Comm comm) = 0;
  // Ends what is queued at once and frees the communicator.
  virtual Result Abort(Comm comm) = 0;
  // Ends what is queued on `comm`, and makes `smaller` of the ranks that are not `lost`, without
  // another unique id. `comm` remains to be aborted. `smaller` may be set later, while `comm` is in
  // progress; both places must last until then. Not blocking.
  virtual Result Shrink(Comm comm, std::span<Rank> lost, Comm& smaller) = 0;
};

}  // namespace ranklab::collectives::nccl
