// A small lab, and what becomes of it when a line changes.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/status.h"
#include "experiment/lab_reader.h"

namespace ranklab::experiment {

// Lines count from 1: name 1, model 2, data 3, train 4, cluster 5, exchange 6, fabric 7.
inline constexpr std::string_view kSmall = R"(name: small
model:    {kind: mlp, layers: [64, 32, 10]}
data:     {kind: digits}
train:    {steps: 10, global_batch: 64}
cluster:  {workers: 2, servers: 1}
exchange: {kind: collective, algorithm: ring}
fabric:   {preset: pcie4_x16}
)";

inline Lab Read(std::string_view text, const std::vector<std::string>& overrides = {}) {
  absl::StatusOr<Lab> lab = ReadLab(text, "x.yaml", overrides);
  EXPECT_TRUE(lab.ok()) << MessageOf(lab.status());
  return lab.ok() ? *std::move(lab) : Lab{};
}

inline std::string Refusal(std::string_view text, const std::vector<std::string>& overrides = {}) {
  const absl::StatusOr<Lab> lab = ReadLab(text, "x.yaml", overrides);
  EXPECT_FALSE(lab.ok());
  EXPECT_EQ(lab.status().code(), absl::StatusCode::kInvalidArgument);
  return MessageOf(lab.status());
}

// kSmall, or a change of it, with one of its lines replaced.
inline std::string With(std::string_view line_of, std::string_view line,
                        std::string_view base = kSmall) {
  std::string text(base);
  const std::size_t begin = text.find(std::string(line_of) + ":");
  EXPECT_NE(begin, std::string::npos);
  return text.replace(begin, text.find('\n', begin) - begin, line);
}
inline std::string Plus(std::string_view more) { return std::string(kSmall) + std::string(more); }

}  // namespace ranklab::experiment
