#pragma once

#include <cstdint>
#include <string>

#include <absl/status/statusor.h>

#include "worker/dataset.h"

namespace ranklab::worker {

// One split from a pair of files in the format of MNIST. All numbers are big-endian 32-bit:
//   images: 0x00000803, count, rows, columns, then count x rows x columns bytes
//   labels: 0x00000801, count, then count bytes
// Pixels / 255. Source: Y. LeCun, C. Cortes, C. Burges, "The MNIST database of handwritten digits".
struct IdxSplit {
  int inputs = 0;   // rows x columns
  int classes = 0;  // largest label + 1
  Split split;
};

// Sizes are held against the file's own size before anything is allocated.
// Errors: NotFound, no such file; InvalidArgument, what is wrong at which byte of which file, or
// images and labels of different counts; Unimplemented, a compressed file.
absl::StatusOr<IdxSplit> LoadIdxSplit(const std::string& images_path,
                                      const std::string& labels_path);

// What a file's header says against what it is and its size; its values are not read.
// Errors: as LoadIdxSplit.
enum class IdxContent : std::uint32_t { kImages = 0x803, kLabels = 0x801 };  // the magic numbers
absl::Status CheckIdxFile(const std::string& path, IdxContent content);

// Training and test files of `spec`. `lab_folder` is where relative paths start.
absl::StatusOr<Dataset> LoadIdx(const experiment::DataSpec& spec, const std::string& lab_folder);

}  // namespace ranklab::worker
