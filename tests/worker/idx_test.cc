#include "worker/idx.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "core/status.h"

namespace ranklab::worker {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string BigEndian(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

std::string Images(std::uint32_t count, std::uint32_t rows, std::uint32_t columns,
                   const std::string& pixels) {
  return BigEndian(0x803) + BigEndian(count) + BigEndian(rows) + BigEndian(columns) + pixels;
}

std::string Labels(std::uint32_t count, const std::string& labels) {
  return BigEndian(0x801) + BigEndian(count) + labels;
}

class IdxTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("ranklab_idx_" + std::to_string(getpid()) + "_" +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return (folder_ / name).string();
  }
  // Of two good labels and `images`.
  absl::Status ImageError(const std::string& images) {
    return LoadIdxSplit(Write("images", images), Write("labels", Labels(2, {"\0\1", 2}))).status();
  }

  std::filesystem::path folder_;
};

const std::string kPixels{"\x00\x33\x66\x99\xcc\xff", 6};

TEST_F(IdxTest, ReadsPixelsAndLabels) {
  const auto idx =
      LoadIdxSplit(Write("images", Images(2, 1, 3, kPixels)), Write("labels", Labels(2, "\7\3")));
  ASSERT_TRUE(idx.ok()) << idx.status();
  EXPECT_EQ(idx->inputs, 3);
  EXPECT_EQ(idx->classes, 8);
  EXPECT_THAT(idx->split.labels, ElementsAre(7, 3));
  EXPECT_THAT(idx->split.inputs,
              testing::Pointwise(testing::FloatEq(), std::vector<float>{0, 0.2, 0.4, 0.6, 0.8, 1}));
}

TEST_F(IdxTest, PathsStartAtTheLabFile) {
  Write("a", Images(2, 1, 3, kPixels));
  Write("b", Labels(2, "\1\0"));
  const experiment::DataSpec spec{
      .kind = "idx", .images = "a", .labels = "b", .test_images = "a", .test_labels = "b"};
  const auto data = LoadDataset(spec, folder_.string());
  EXPECT_EQ(data.status().code(), absl::StatusCode::kInvalidArgument)
      << "\"\\1\\0\" is one character short";
  Write("b", Labels(2, {"\1\0", 2}));
  const auto good = LoadDataset(spec, folder_.string());
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_EQ(good->inputs, 3);
  EXPECT_EQ(good->classes, 2);
  EXPECT_EQ(good->test.samples(), 2);
}

TEST_F(IdxTest, AMissingFileIsNamed) {
  const auto idx = LoadIdxSplit((folder_ / "none").string(), Write("labels", Labels(1, "\1")));
  ASSERT_EQ(idx.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(MessageOf(idx.status()), HasSubstr((folder_ / "none").string()));
  EXPECT_EQ(LoadIdxSplit(folder_.string(), (folder_ / "labels").string()).status().code(),
            absl::StatusCode::kNotFound)
      << "a folder is no file";
}

TEST_F(IdxTest, AnotherMagicIsShownBesideTheRightOne) {
  const absl::Status status = ImageError(Labels(2, "\1\2") + std::string(20, '\0'));
  ASSERT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(status),
              AllOf(HasSubstr("images: byte 0"), HasSubstr("0x00000801"), HasSubstr("0x00000803")));
}

TEST_F(IdxTest, GzipIsNotReadAndSaysSo) {
  const absl::Status status = ImageError("\x1f\x8b\x08" + std::string(30, '\0'));
  ASSERT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(MessageOf(status), HasSubstr("gzip"));
}

TEST_F(IdxTest, EveryTruncationIsFound) {
  const std::string whole = Images(2, 1, 3, kPixels);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const absl::Status status = ImageError(whole.substr(0, size));
    ASSERT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << size;
    ASSERT_THAT(MessageOf(status),
                HasSubstr(size < 16 ? "byte " + std::to_string(size) : "byte 16"))
        << size;
  }
}

TEST_F(IdxTest, BytesBehindTheLastImageAreAnError) {
  EXPECT_THAT(MessageOf(ImageError(Images(2, 1, 3, kPixels + "x"))),
              HasSubstr("byte 16: 7 bytes of values follow; the header promises 6"));
}

// Header fields whose product would take all memory, or overflow, in files of 22 bytes.
TEST_F(IdxTest, HostileDimensionsAreRefusedBeforeAnythingIsAllocated) {
  for (const auto& [count, rows, columns] : {std::tuple{0xffffffffU, 0xffffffffU, 0xffffffffU},
                                             {0x80000000U, 0x80000000U, 2U},
                                             {0U, 1U, 3U},
                                             {2U, 0U, 3U},
                                             {0x10000U, 0x10000U, 0x10000U}}) {
    const absl::Status status = ImageError(Images(count, rows, columns, kPixels));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument)
        << count << " x " << rows << " x " << columns;
    EXPECT_THAT(MessageOf(status), HasSubstr("byte "));
  }
}

TEST_F(IdxTest, ImagesAndLabelsMustBeAsMany) {
  EXPECT_THAT(MessageOf(ImageError(Images(3, 1, 2, kPixels))),
              AllOf(HasSubstr("3 images"), HasSubstr("2 labels")));
}

TEST_F(IdxTest, TestFilesMustFitTheTrainingFiles) {
  Write("a", Images(2, 1, 3, kPixels));
  Write("b", Labels(2, "\1\2"));
  Write("wide", Images(1, 1, 6, kPixels));
  Write("one", Labels(1, "\1"));
  Write("high", Labels(2, "\1\3"));
  experiment::DataSpec spec{
      .kind = "idx", .images = "a", .labels = "b", .test_images = "wide", .test_labels = "one"};
  EXPECT_THAT(MessageOf(LoadIdx(spec, folder_.string()).status()), HasSubstr("images of 6 pixels"));
  spec.test_images = "a";
  spec.test_labels = "high";
  EXPECT_THAT(MessageOf(LoadIdx(spec, folder_.string()).status()), HasSubstr("label 3"));
}

}  // namespace
}  // namespace ranklab::worker
