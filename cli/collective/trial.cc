#include "cli/collective/trial.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/status.h"

namespace ranklab::cli {
namespace {

using collectives::Collective;
using nlohmann::json;

// read(json object of `line`); the library's exceptions end here.
template <typename Read>
auto WithObject(const std::string& line, Read read) -> absl::StatusOr<decltype(read(json()))> {
  try {
    return read(json::parse(line));
  } catch (const json::exception& error) {
    return InvalidArgument("\"%s\": %s", line, error.what());
  }
}

}  // namespace

bool HasBlocks(Collective collective) {
  return collective == Collective::kAllGather || collective == Collective::kReduceScatter ||
         collective == Collective::kAllToAll;
}

bool Reduces(Collective collective) {
  return collective == Collective::kAllReduce || collective == Collective::kReduce ||
         collective == Collective::kReduceScatter;
}

std::int64_t ElementsOf(const Trial& trial, int ranks) {
  return HasBlocks(trial.collective) ? trial.count * ranks : trial.count;
}

Bytes SizeOf(const Trial& trial, int ranks) {
  return ElementsOf(trial, ranks) * compute::SizeOf(trial.dtype);
}

std::string NcclName(Collective collective) {
  if (collective == Collective::kAllToAll) {
    return "alltoall";
  }
  std::string name(NameOf(collective));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::string NcclName(compute::DType dtype) {
  switch (dtype) {
    case compute::DType::kFloat32:
      return "float";
    case compute::DType::kBFloat16:
      return "bfloat16";
    case compute::DType::kFloat16:
      return "half";
    case compute::DType::kInt32:
      return "int32";
  }
  return "?";
}

std::string NcclName(compute::ReduceOp op) {
  switch (op) {
    case compute::ReduceOp::kSum:
      return "sum";
    case compute::ReduceOp::kMax:
      return "max";
    case compute::ReduceOp::kMin:
      return "min";
  }
  return "?";
}

std::string TrialLine(const Trial& trial) {
  return json{{"collective", trial.collective},
              {"algorithm", trial.algorithm},
              {"chunks", trial.chunks},
              {"dtype", trial.dtype},
              {"op", trial.op},
              {"root", trial.root},
              {"count", trial.count},
              {"in_place", trial.in_place},
              {"warmup", trial.warmup},
              {"iterations", trial.iterations},
              {"check", trial.check}}
      .dump();
}

absl::StatusOr<Trial> ReadTrial(const std::string& line) {
  return WithObject(line, [](const json& object) {
    Trial trial;
    object.at("collective").get_to(trial.collective);
    object.at("algorithm").get_to(trial.algorithm);
    object.at("chunks").get_to(trial.chunks);
    object.at("dtype").get_to(trial.dtype);
    object.at("op").get_to(trial.op);
    object.at("root").get_to(trial.root);
    object.at("count").get_to(trial.count);
    object.at("in_place").get_to(trial.in_place);
    object.at("warmup").get_to(trial.warmup);
    object.at("iterations").get_to(trial.iterations);
    object.at("check").get_to(trial.check);
    return trial;
  });
}

std::string MeasurementLine(const Measurement& measurement) {
  return json{{"seconds", measurement.seconds}, {"wrong", measurement.wrong}}.dump();
}

absl::StatusOr<Measurement> ReadMeasurement(const std::string& line) {
  return WithObject(line, [](const json& object) {
    return Measurement{.seconds = object.at("seconds").get<double>(),
                       .wrong = object.at("wrong").get<std::int64_t>()};
  });
}

}  // namespace ranklab::cli
