#include "worker/idx.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "core/status.h"

namespace ranklab::worker {
namespace {

constexpr auto kImages = static_cast<std::uint32_t>(IdxContent::kImages);
constexpr auto kLabels = static_cast<std::uint32_t>(IdxContent::kLabels);
// Far above any file of this format, so that products of sizes stay far below 2^63.
constexpr std::int64_t kMaxDimension = std::int64_t{1} << 31;
constexpr std::int64_t kMaxInputs = 1 << 20;

std::uint32_t BigEndian(const unsigned char* bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 |
         std::uint32_t{bytes[2]} << 8 | std::uint32_t{bytes[3]};
}

struct IdxFile {
  std::vector<std::int64_t> dimensions;
  std::vector<unsigned char> values{};  // of the product of the dimensions
};

struct Header {
  std::vector<unsigned char> bytes;
  std::int64_t file_size = 0;
};

struct Shape {
  std::vector<std::int64_t> dimensions{};
  std::int64_t count = 1;  // their product
  std::int64_t begin = 0;  // of the values, in the file
};

absl::Status CheckMagic(const std::string& path, std::uint32_t found, std::uint32_t magic) {
  if (found >> 16 == 0x1f8b) {
    return Unimplemented("%s: byte 0: a gzip file; unpack it first", path);
  }
  if (found != magic) {
    return InvalidArgument("%s: byte 0: magic 0x%08x; 0x%08x is right for %s", path, found, magic,
                           magic == kImages ? "images" : "labels");
  }
  return absl::OkStatus();
}

absl::StatusOr<Header> ReadHeader(const std::string& path, std::ifstream& file,
                                  std::uint32_t magic) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error) || !file.is_open()) {
    return NotFound("%s: %s", path, error ? error.message() : "no file that can be read");
  }
  Header header{.bytes = std::vector<unsigned char>(magic == kImages ? 16 : 8),
                .file_size = static_cast<std::int64_t>(std::filesystem::file_size(path, error))};
  file.read(reinterpret_cast<char*>(header.bytes.data()),
            static_cast<std::streamsize>(header.bytes.size()));
  if (file.gcount() >= 4) {
    RETURN_IF_ERROR(CheckMagic(path, BigEndian(header.bytes.data()), magic));
  }
  if (error || file.gcount() < static_cast<std::streamsize>(header.bytes.size())) {
    return InvalidArgument("%s: byte %d: the file ends in its header of %d bytes", path,
                           file.gcount(), header.bytes.size());
  }
  return header;
}

// The dimensions that `file`, just opened, has values for.
absl::StatusOr<Shape> ReadShape(const std::string& path, std::ifstream& file, std::uint32_t magic) {
  ASSIGN_OR_RETURN(const Header header, ReadHeader(path, file, magic));
  const auto header_size = static_cast<std::int64_t>(header.bytes.size());
  Shape shape{.begin = header_size};
  for (std::int64_t at = 4; at < header_size; at += 4) {
    const std::int64_t dimension = BigEndian(header.bytes.data() + at);
    if (dimension < 1 || dimension > kMaxDimension || shape.count > kMaxDimension) {
      return InvalidArgument("%s: byte %d: a dimension of %d", path, at, dimension);
    }
    shape.dimensions.push_back(dimension);
    shape.count *= dimension;
  }
  if (header.file_size != header_size + shape.count) {
    return InvalidArgument("%s: byte %d: %d bytes of values follow; the header promises %d", path,
                           header_size, header.file_size - header_size, shape.count);
  }
  return shape;
}

absl::StatusOr<IdxFile> ReadIdx(const std::string& path, std::uint32_t magic) {
  std::ifstream file(path, std::ios::binary);
  ASSIGN_OR_RETURN(Shape shape, ReadShape(path, file, magic));
  IdxFile idx{.dimensions = std::move(shape.dimensions)};
  idx.values.resize(static_cast<std::size_t>(shape.count));
  file.read(reinterpret_cast<char*>(idx.values.data()), shape.count);
  if (file.gcount() != shape.count) {
    return InvalidArgument("%s: byte %d: cannot be read", path, shape.begin + file.gcount());
  }
  return idx;
}

std::string PathOf(const std::string& path, const std::string& folder) {
  return (std::filesystem::path(folder) / path).string();
}

}  // namespace

absl::Status CheckIdxFile(const std::string& path, IdxContent content) {
  std::ifstream file(path, std::ios::binary);
  return ReadShape(path, file, static_cast<std::uint32_t>(content)).status();
}

absl::StatusOr<IdxSplit> LoadIdxSplit(const std::string& images_path,
                                      const std::string& labels_path) {
  ASSIGN_OR_RETURN(const IdxFile labels, ReadIdx(labels_path, kLabels));
  ASSIGN_OR_RETURN(const IdxFile images, ReadIdx(images_path, kImages));
  if (images.dimensions[0] != labels.dimensions[0]) {
    return InvalidArgument("%s: byte 4: %d images, but %s has %d labels", images_path,
                           images.dimensions[0], labels_path, labels.dimensions[0]);
  }
  const std::int64_t inputs = images.dimensions[1] * images.dimensions[2];
  if (inputs > kMaxInputs) {
    return InvalidArgument("%s: byte 8: images of %d pixels; at most %d", images_path, inputs,
                           kMaxInputs);
  }
  IdxSplit result;
  result.inputs = static_cast<int>(inputs);
  result.classes = 1 + *std::max_element(labels.values.begin(), labels.values.end());
  result.split.labels.assign(labels.values.begin(), labels.values.end());
  result.split.inputs.reserve(images.values.size());
  for (const unsigned char pixel : images.values) {
    result.split.inputs.push_back(static_cast<float>(pixel) / 255.0F);
  }
  return result;
}

absl::StatusOr<Dataset> LoadIdx(const experiment::DataSpec& spec, const std::string& lab_folder) {
  ASSIGN_OR_RETURN(IdxSplit train,
                   LoadIdxSplit(PathOf(spec.images, lab_folder), PathOf(spec.labels, lab_folder)));
  ASSIGN_OR_RETURN(IdxSplit test, LoadIdxSplit(PathOf(spec.test_images, lab_folder),
                                               PathOf(spec.test_labels, lab_folder)));
  if (train.inputs != test.inputs) {
    return InvalidArgument("%s: byte 8: images of %d pixels, those of %s have %d",
                           PathOf(spec.test_images, lab_folder), test.inputs,
                           PathOf(spec.images, lab_folder), train.inputs);
  }
  if (test.classes > train.classes) {
    return InvalidArgument("%s: label %d does not occur in %s",
                           PathOf(spec.test_labels, lab_folder), test.classes - 1,
                           PathOf(spec.labels, lab_folder));
  }
  return Dataset{.inputs = train.inputs,
                 .classes = train.classes,
                 .train = std::move(train.split),
                 .test = std::move(test.split)};
}

}  // namespace ranklab::worker
