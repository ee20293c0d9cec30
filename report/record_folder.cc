#include "report/record_folder.h"

#include <filesystem>
#include <system_error>

#include <absl/time/time.h>
#include <nlohmann/json.hpp>

#include "core/status.h"
#include "report/atomic_file.h"
#include "report/steps_csv.h"
#include "report/summary_text.h"

namespace ranklab::report {
namespace {

using Json = nlohmann::ordered_json;

std::string Dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::Status MakeFolders(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  return error ? Unavailable("cannot make folder %s: %s", path, error.message()) : absl::OkStatus();
}

}  // namespace

std::string CellFolderName(const std::string& part, int cell, int repeat) {
  return absl::StrFormat("cells/%s-%d-%d", part, cell, repeat);
}

absl::StatusOr<RecordFolder> RecordFolder::Create(const std::string& parent,
                                                  const experiment::Lab& lab,
                                                  std::chrono::system_clock::time_point now) {
  constexpr int kMostTries = 1000;
  RETURN_IF_ERROR(MakeFolders(parent));
  const std::string base =
      parent + "/" + lab.name + "-" +
      absl::FormatTime("%Y%m%d-%H%M%S", absl::FromChrono(now), absl::UTCTimeZone());
  for (int number = 1; number <= kMostTries; ++number) {
    const std::string path = number == 1 ? base : base + "-" + std::to_string(number);
    std::error_code error;
    if (std::filesystem::create_directory(path, error)) {
      RecordFolder folder(path);
      RETURN_IF_ERROR(WriteWhole(path + "/lab.yaml", lab.text));
      RETURN_IF_ERROR(Append(path + "/steps.csv", StepsCsvHeader()));
      return folder;
    }
    if (error) {
      return Unavailable("cannot make folder %s: %s", path, error.message());
    }
  }
  return Unavailable("%s and %d more of its name are taken", base, kMostTries - 1);
}

absl::Status RecordFolder::WriteEnvironment(const experiment::Lab& lab,
                                            const experiment::RunSummary& summary) const {
  Json json = Json::object();
  json["lab"] = lab.name;
  json["lab_file"] = lab.file;
  json["lab_hash"] = lab.hash;
  json["overrides"] = lab.overrides;
  Json seeds = Json::array();
  for (const experiment::Part& part : lab.parts) {
    for (const experiment::Cell& cell : part.cells) {
      if (std::find(seeds.begin(), seeds.end(), Json(cell.spec.seed)) == seeds.end()) {
        seeds.push_back(cell.spec.seed);
      }
    }
  }
  json["seeds"] = seeds;
  json["build"] = summary.build;
  for (const auto& [key, value] : summary.environment) {
    json[key] = value;
  }
  return WriteWhole(path_ + "/environment.json", Dump(json, 1));
}

absl::Status RecordFolder::AppendSteps(const std::string& part,
                                       const experiment::CellRun& run) const {
  return Append(path_ + "/steps.csv", StepsCsvLines(part, run));
}

absl::Status RecordFolder::WriteSummary(const experiment::RunSummary& summary) const {
  RETURN_IF_ERROR(WriteWhole(path_ + "/summary.json", experiment::ToJson(summary)));
  return WriteWhole(path_ + "/table.md", PrintSummaryMarkdown(summary));
}

absl::StatusOr<std::string> RecordFolder::CellFolder(const std::string& part, int cell, int repeat,
                                                     const char* below) const {
  const std::string folder = path_ + "/" + CellFolderName(part, cell, repeat) + below;
  RETURN_IF_ERROR(MakeFolders(folder));
  return folder;
}

absl::Status RecordFolder::WriteTrace(const std::string& part, int cell, int repeat,
                                      const RankTrace& trace) const {
  ASSIGN_OR_RETURN(const std::string folder, CellFolder(part, cell, repeat, "/trace"));
  return WriteWhole(absl::StrFormat("%s/rank_%d.json", folder, trace.rank), TraceJson(trace));
}

absl::Status RecordFolder::AppendInjection(const std::string& part, int cell, int repeat,
                                           const InjectionLine& injection) const {
  ASSIGN_OR_RETURN(const std::string folder, CellFolder(part, cell, repeat, ""));
  const Json line = {{"member", injection.member},
                     {"step", injection.step},
                     {"asked", injection.asked},
                     {"applied", injection.applied},
                     {"ends", injection.ends}};
  return Append(folder + "/injections.jsonl", Dump(line, -1));
}

}  // namespace ranklab::report
