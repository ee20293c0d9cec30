// The folder that a run leaves: runs/<name>-<time>/ with lab.yaml, environment.json, steps.csv,
// summary.json, table.md and, below cells/<part>-<number>-<repeat>/, traces and injections. What
// is finished stays whole when the run is interrupted.
#pragma once

#include <chrono>
#include <string>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "experiment/lab_spec.h"
#include "experiment/run_record.h"
#include "report/trace_file.h"

namespace ranklab::report {

// One injection as it was asked for and as it acted.
struct InjectionLine {
  std::string member{};  // "worker 2"
  Step step = 0;         // of the member, when it began or ended
  std::string asked{};
  std::string applied{};
  bool ends = false;
};

// "cells/scale-3-1", below the record's folder.
std::string CellFolderName(const std::string& part, int cell, int repeat);

// Paths are <path()>/...; all errors: Unavailable, the path and the system's reason.
class RecordFolder {
 public:
  // Makes <parent>/<lab's name>-<UTC time>, "-2" and so on behind it when that is taken, and writes
  // lab.yaml and the head of steps.csv.
  static absl::StatusOr<RecordFolder> Create(const std::string& parent, const experiment::Lab& lab,
                                             std::chrono::system_clock::time_point now);

  const std::string& path() const { return path_; }

  // environment.json: versions, cores, ..., with the lab's hash, file and overrides.
  absl::Status WriteEnvironment(const experiment::Lab& lab,
                                const experiment::RunSummary& summary) const;

  // `run` names its part and cell by index; `part` is the part's name.
  absl::Status AppendSteps(const std::string& part, const experiment::CellRun& run) const;

  // summary.json and table.md, replaced whole. After each cell.
  absl::Status WriteSummary(const experiment::RunSummary& summary) const;

  // cells/<part>-<cell>-<repeat>/trace/rank_<N>.json.
  absl::Status WriteTrace(const std::string& part, int cell, int repeat,
                          const RankTrace& trace) const;

  // A line of cells/<part>-<cell>-<repeat>/injections.jsonl.
  absl::Status AppendInjection(const std::string& part, int cell, int repeat,
                               const InjectionLine& injection) const;

 private:
  explicit RecordFolder(std::string path) : path_(std::move(path)) {}

  absl::StatusOr<std::string> CellFolder(const std::string& part, int cell, int repeat,
                                         const char* below) const;

  std::string path_;
};

}  // namespace ranklab::report
