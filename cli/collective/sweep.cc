#include "cli/collective/sweep.h"

#include "cli/collective/trial_buffers.h"
#include "collectives/schedule/catalog.h"
#include "core/status.h"

namespace ranklab::cli {
namespace {

using collectives::Collective;
using compute::DType;
using compute::ReduceOp;

constexpr Collective kCollectives[] = {Collective::kAllReduce,     Collective::kAllGather,
                                       Collective::kReduceScatter, Collective::kBroadcast,
                                       Collective::kReduce,        Collective::kAllToAll};
constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt32};
constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin};
constexpr std::size_t kMostSizes = 100'000;

// Those of `known` that `name` means: one, or with "all" every one.
template <typename T, std::size_t N>
absl::StatusOr<std::vector<T>> Chosen(const T (&known)[N], const std::string& name,
                                      const char* what) {
  std::vector<T> chosen;
  std::string names;
  for (const T& one : known) {
    if (name == "all" || name == NcclName(one)) {
      chosen.push_back(one);
    }
    names += (names.empty() ? "" : ", ") + NcclName(one);
  }
  if (chosen.empty()) {
    return InvalidArgument("%s \"%s\" is not measured; one of: %s", what, name, names);
  }
  return chosen;
}

absl::StatusOr<std::vector<std::string>> Algorithms(Collective collective,
                                                    const std::string& name) {
  std::vector<std::string> chosen;
  std::string names;
  for (const collectives::CatalogEntry& entry : collectives::Catalog()) {
    if (entry.collective != collective) {
      continue;
    }
    if (name == "all" || name == entry.name || (name.empty() && chosen.empty())) {
      chosen.emplace_back(entry.name);
    }
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  }
  if (chosen.empty()) {
    return InvalidArgument("no %s algorithm is called \"%s\"; one of: %s, or all",
                           NcclName(collective), name, names);
  }
  return chosen;
}

absl::Status CheckRanges(const SweepOptions& options) {
  if (options.ranks < 1 || options.ranks > TrialBuffers::kMostRanks) {
    return InvalidArgument("--ranks %d: 1 to %d", options.ranks, TrialBuffers::kMostRanks);
  }
  if (options.root < 0 || options.root >= options.ranks) {
    return InvalidArgument("--root %d: 0 to %d", options.root, options.ranks - 1);
  }
  if (options.max_bytes < options.min_bytes) {
    return InvalidArgument("-e %d is smaller than -b %d", options.max_bytes, options.min_bytes);
  }
  if (options.step_factor <= 1 && options.step_bytes <= 0) {
    return InvalidArgument("-i %d does not grow; give -i above 0, or -f above 1",
                           options.step_bytes);
  }
  if (options.step_factor > 1 && options.min_bytes == 0) {
    return InvalidArgument("-b 0 times -f %d stays 0; give -b above 0, or -i", options.step_factor);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Bytes>> SizesOf(const SweepOptions& options) {
  RETURN_IF_ERROR(CheckRanges(options));
  std::vector<Bytes> sizes;
  for (Bytes size = options.min_bytes; size <= options.max_bytes;
       size = options.step_factor > 1 ? size * options.step_factor : size + options.step_bytes) {
    sizes.push_back(size);
    if (sizes.size() > kMostSizes) {
      return InvalidArgument("more than %d sizes; give a larger -i, or -f", kMostSizes);
    }
  }
  return sizes;
}

std::int64_t CountOf(const Trial& trial, int ranks, Bytes size) {
  const Bytes element = compute::SizeOf(trial.dtype);
  if (!HasBlocks(trial.collective)) {
    return size / element;
  }
  const std::int64_t aligned = 16 / element;
  return size / element / ranks / aligned * aligned;
}

}  // namespace

absl::StatusOr<std::vector<Trial>> TrialsOf(const SweepOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<Bytes> sizes, SizesOf(options));
  ASSIGN_OR_RETURN(const std::vector<Collective> collectives,
                   Chosen(kCollectives, options.collective, "--collective"));
  ASSIGN_OR_RETURN(const std::vector<DType> types, Chosen(kTypes, options.dtype, "-d"));
  ASSIGN_OR_RETURN(const std::vector<ReduceOp> ops, Chosen(kOps, options.op, "-o"));
  if (collectives.size() != 1) {
    return InvalidArgument("--collective takes one");
  }
  Trial trial{.collective = collectives.front(),
              .chunks = options.chunks,
              .root = options.root,
              .warmup = options.warmup,
              .iterations = options.iterations,
              .check = options.check != 0};
  ASSIGN_OR_RETURN(const std::vector<std::string> algorithms,
                   Algorithms(trial.collective, options.algorithm));
  std::vector<Trial> trials;
  for (const std::string& algorithm : algorithms) {
    for (const DType dtype : types) {
      for (const ReduceOp op : ops) {
        for (const Bytes size : sizes) {
          trial.algorithm = algorithm;
          trial.dtype = dtype;
          trial.op = op;
          trial.count = CountOf(trial, options.ranks, size);
          trials.push_back(trial);
        }
        if (!Reduces(trial.collective)) {
          break;
        }
      }
    }
  }
  return trials;
}

}  // namespace ranklab::cli
