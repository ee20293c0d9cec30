#include "sim/validation/published_table.h"

#include <cstdlib>

#include "core/check.h"
#include "core/status.h"

// The files as they are, each between two symbols.
#define RANKLAB_EMBED(name, file)                 \
  asm(".pushsection .rodata\n"                    \
      ".globl ranklab_" #name                     \
      "_begin\n"                                  \
      "ranklab_" #name                            \
      "_begin:\n"                                 \
      ".incbin \"" RANKLAB_PUBLISHED "/" file     \
      "\"\n"                                      \
      ".globl ranklab_" #name                     \
      "_end\n"                                    \
      "ranklab_" #name                            \
      "_end:\n"                                   \
      ".popsection\n");                           \
  extern "C" const char ranklab_##name##_begin[]; \
  extern "C" const char ranklab_##name##_end[]

RANKLAB_EMBED(step_times, "korthikanti_iteration_time.csv");
RANKLAB_EMBED(memory, "korthikanti_memory.csv");
RANKLAB_EMBED(weak_scaling, "megatron_sc21.csv");
RANKLAB_EMBED(multi_node, "vtrain_multi_node.csv");
RANKLAB_EMBED(failures, "llama3_failures.csv");

namespace ranklab::sim {
namespace {

std::vector<std::string> Fields(std::string_view line) {
  std::vector<std::string> fields;
  for (;;) {
    const std::size_t comma = line.find(',');
    fields.emplace_back(line.substr(0, comma));
    if (comma == std::string_view::npos) {
      return fields;
    }
    line.remove_prefix(comma + 1);
  }
}

std::string_view TextOf(Published table) {
  switch (table) {
    case Published::kStepTimes:
      return {ranklab_step_times_begin, ranklab_step_times_end};
    case Published::kMemory:
      return {ranklab_memory_begin, ranklab_memory_end};
    case Published::kWeakScaling:
      return {ranklab_weak_scaling_begin, ranklab_weak_scaling_end};
    case Published::kMultiNode:
      return {ranklab_multi_node_begin, ranklab_multi_node_end};
    case Published::kFailures:
      return {ranklab_failures_begin, ranklab_failures_end};
  }
  return {};
}

}  // namespace

absl::StatusOr<Table> Table::Read(std::string_view text) {
  Table table;
  for (int line = 1; !text.empty(); ++line) {
    const std::size_t end = text.find('\n');
    std::string_view row = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (row.ends_with('\r')) {
      row.remove_suffix(1);
    }
    if (line == 1) {
      table.header_ = Fields(row);
      continue;
    }
    table.rows_.push_back(Fields(row));
    if (table.rows_.back().size() != table.header_.size()) {
      return InvalidArgument("line %d has %d fields; the header has %d", line,
                             table.rows_.back().size(), table.header_.size());
    }
  }
  return table;
}

std::size_t Table::ColumnOf(std::string_view column) const {
  std::size_t i = 0;
  while (i < header_.size() && header_[i] != column) {
    ++i;
  }
  RANKLAB_CHECK(i < header_.size(), "a column of the table");
  return i;
}

const std::string& Table::Text(int row, std::string_view column) const {
  return rows_.at(static_cast<std::size_t>(row)).at(ColumnOf(column));
}

double Table::Number(int row, std::string_view column) const {
  return std::strtod(Text(row, column).c_str(), nullptr);
}

int Table::Integer(int row, std::string_view column) const {
  return static_cast<int>(Number(row, column));
}

Table PublishedTable(Published table) {
  absl::StatusOr<Table> read = Table::Read(TextOf(table));
  RANKLAB_CHECK(read.ok(), "an embedded table is well formed");
  return *std::move(read);
}

}  // namespace ranklab::sim
