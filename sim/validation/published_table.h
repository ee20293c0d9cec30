// The tables of data/published, embedded in the program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <absl/status/statusor.h>

namespace ranklab::sim {

class Table {
 public:
  // Comma separated, one header line. Errors: InvalidArgument, a row of another width, with its
  // line.
  static absl::StatusOr<Table> Read(std::string_view text);

  int rows() const { return static_cast<int>(rows_.size()); }
  // Requires: the column exists.
  const std::string& Text(int row, std::string_view column) const;
  double Number(int row, std::string_view column) const;
  int Integer(int row, std::string_view column) const;

 private:
  std::size_t ColumnOf(std::string_view column) const;

  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

enum class Published { kStepTimes, kMemory, kWeakScaling, kMultiNode, kFailures };

Table PublishedTable(Published table);

}  // namespace ranklab::sim
