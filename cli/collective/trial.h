// One measurement of `ranklab collective`: which collective, on what, how often. In the words of
// nccl-tests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <absl/status/statusor.h>

#include "collectives/schedule/schedule.h"
#include "compute/tensor.h"

namespace ranklab::cli {

struct Trial {
  collectives::Collective collective = collectives::Collective::kAllReduce;
  std::string algorithm = "ring";  // of ranklab; a rival picks its own
  int chunks = 0;                  // CommunicatorOptions::chunks_per_rank
  compute::DType dtype = compute::DType::kFloat32;
  compute::ReduceOp op = compute::ReduceOp::kSum;
  Rank root = 0;
  std::int64_t count = 0;  // elements: of the buffer; of one rank's block where there are blocks
  bool in_place = false;
  int warmup = 1;
  int iterations = 20;
  bool check = true;
};

// What came of it.
struct Measurement {
  double seconds = 0;      // of one iteration on the slowest rank, mean over the iterations
  std::int64_t wrong = 0;  // elements, on all ranks
};

// Whether `count` is of one rank's block: all-gather, reduce-scatter, all-to-all.
bool HasBlocks(collectives::Collective collective);
bool Reduces(collectives::Collective collective);

// Elements of the larger of what a rank sends and receives.
std::int64_t ElementsOf(const Trial& trial, int ranks);
Bytes SizeOf(const Trial& trial, int ranks);

// "all_reduce", "alltoall"; "float", "half"; "sum": what nccl-tests calls them.
std::string NcclName(collectives::Collective collective);
std::string NcclName(compute::DType dtype);
std::string NcclName(compute::ReduceOp op);

// A line, and back. Errors: InvalidArgument, not written by TrialLine.
std::string TrialLine(const Trial& trial);
absl::StatusOr<Trial> ReadTrial(const std::string& line);
std::string MeasurementLine(const Measurement& measurement);
absl::StatusOr<Measurement> ReadMeasurement(const std::string& line);

}  // namespace ranklab::cli
