#include "cli/lab_limits.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <unistd.h>

#include "compute/cuda/cuda_device.h"
#include "core/status.h"
#include "experiment/setting_place.h"
#include "worker/idx.h"

namespace ranklab::cli {
namespace {

using experiment::Cell;
using experiment::Lab;
using experiment::LabSpec;

absl::Status Refuse(const Lab& lab, const Cell& cell, std::string_view path,
                    const std::string& what) {
  return InvalidArgument("%s: %s is %s", experiment::PlaceOf(lab, cell, path), path, what);
}

// Of the parts that are run, not simulated.
template <typename Check>
absl::Status ForEachCell(const Lab& lab, Check check) {
  for (const experiment::Part& part : lab.parts) {
    if (part.simulated) {
      continue;
    }
    for (const Cell& cell : part.cells) {
      RETURN_IF_ERROR(check(cell));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckFiles(const Lab& lab, const Cell& cell) {
  const experiment::DataSpec& data = cell.spec.data;
  const std::filesystem::path folder = std::filesystem::path(lab.file).parent_path();
  const std::array<std::pair<const char*, const std::string*>, 5> files = {
      {{"data.images", &data.images},
       {"data.labels", &data.labels},
       {"data.test_images", &data.test_images},
       {"data.test_labels", &data.test_labels},
       {"data.file", &data.file}}};
  for (const auto& [path, file] : files) {
    if (!file->empty() && access((folder / *file).c_str(), R_OK) != 0) {
      return Refuse(lab, cell, path,
                    absl::StrFormat("\"%s\"; %s: %s (a path is relative to the lab file)", *file,
                                    (folder / *file).string(), std::strerror(errno)));
    }
    if (file->empty() || data.kind != "idx") {
      continue;
    }
    const bool images = std::string_view(path).ends_with("images");
    const absl::Status fits = worker::CheckIdxFile(
        folder / *file, images ? worker::IdxContent::kImages : worker::IdxContent::kLabels);
    if (!fits.ok()) {
      return Refuse(lab, cell, path, absl::StrFormat("\"%s\"; %s", *file, MessageOf(fits)));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckProcesses(const Lab& lab, const Cell& cell) {
  const experiment::ClusterSpec& cluster = cell.spec.cluster;
  const bool has_servers =
      std::holds_alternative<experiment::ParameterServerSpec>(cell.spec.exchange.kind);
  for (const auto& [path, count] :
       {std::pair{"cluster.workers", cluster.workers},
        std::pair{"cluster.servers", has_servers ? cluster.servers : 0}}) {
    if (count > kMostLocalProcesses) {
      return Refuse(lab, cell, path,
                    absl::StrFormat("%d; at most %d on one machine, more on a cluster "
                                    "(--coordinator) or in ranklab simulate",
                                    count, kMostLocalProcesses));
    }
  }
  return absl::OkStatus();
}

bool IsNccl(const Cell& cell) {
  return std::holds_alternative<experiment::NcclSpec>(cell.spec.exchange.kind);
}

// What a cell without a GPU, or the whole build without CUDA, cannot do; `why` that is.
absl::Status RefuseGpu(const Lab& lab, const Cell& cell, const std::string& why) {
  if (IsNccl(cell)) {
    return Refuse(lab, cell, "exchange.kind",
                  absl::StrFormat("\"nccl\"; %s; one of ps, collective, none", why));
  }
  return Refuse(lab, cell, "cluster.device",
                absl::StrFormat("\"cuda\"; %s; one of auto, cpu", why));
}

bool WantsGpu(const Cell& cell) { return IsNccl(cell) || cell.spec.cluster.device == "cuda"; }

}  // namespace

absl::Status CheckBuildCanRun(const Lab& lab) {
  return ForEachCell(lab, [&lab](const Cell& cell) {
    return WantsGpu(cell) && absl::IsUnimplemented(compute::cuda::DeviceCount().status())
               ? RefuseGpu(lab, cell, "this build has no CUDA")
               : absl::OkStatus();
  });
}

absl::Status CheckThisMachineCanRun(const Lab& lab, int workers_for_all) {
  if (std::all_of(lab.parts.begin(), lab.parts.end(),
                  [](const experiment::Part& part) { return part.simulated; })) {
    return InvalidArgument(
        "%s: every part is simulated, so there is nothing to run; ranklab "
        "simulate %s plays it",
        lab.file, lab.file);
  }
  return ForEachCell(lab, [&](const Cell& cell) {
    RETURN_IF_ERROR(CheckProcesses(lab, cell));
    if (cell.spec.cluster.workers == 0 && workers_for_all == 0) {
      return Refuse(lab, cell, "cluster.workers",
                    "all; on this machine say how many with --workers N");
    }
    if (WantsGpu(cell)) {
      const absl::Status found = compute::cuda::DeviceCount().status();
      if (!found.ok()) {
        return RefuseGpu(lab, cell, MessageOf(found));
      }
    }
    return CheckFiles(lab, cell);
  });
}

}  // namespace ranklab::cli
