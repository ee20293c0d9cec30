// `ranklab device`: what this machine computes on, how fast it multiplies matrices, and how much of
// that the runs of a record made use of.
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/matrix_rate.h"
#include "cli/read_record.h"
#include "compute/make_device.h"
#include "core/status.h"
#include "experiment/lab_reader.h"
#include "experiment/model_flops.h"

namespace ranklab::cli {
namespace {

using compute::DType;
using experiment::CellSummary;
using experiment::Lab;
using experiment::LabSpec;

struct DeviceFlags {
  std::string device = "auto";
  int threads = 1;
  std::string run;  // folder of a record
  std::vector<std::string> overrides;
};

using Rates = std::map<std::string, MatrixRate>;  // by precision

absl::StatusOr<Rates> MeasureRates(compute::Device& device) {
  Rates rates;
  for (const auto& [name, dtype] :
       {std::pair("fp32", DType::kFloat32), std::pair("bf16", DType::kBFloat16),
        std::pair("fp16", DType::kFloat16)}) {
    ASSIGN_OR_RETURN(const MatrixRate rate, MeasureMatrixRate(device, dtype));
    std::printf("%s: %.4g TFLOP/s in products of %lld x %lld matrices, measured\n", name,
                rate.flops * 1e-12, static_cast<long long>(rate.size),
                static_cast<long long>(rate.size));
    std::fflush(stdout);
    rates[name] = rate;
  }
  return rates;
}

absl::StatusOr<Lab> LabOf(const DeviceFlags& flags, const experiment::RunSummary& summary) {
  ASSIGN_OR_RETURN(Lab lab, experiment::ReadLabFile(flags.run + "/lab.yaml", flags.overrides));
  if (lab.hash != summary.lab_hash) {
    return InvalidArgument(
        "%s was made with other --set flags, which its environment.json lists; "
        "give the same",
        flags.run);
  }
  return lab;
}

// MFU: the model's own FLOPs a second, of each worker, over the measured rate. More than all of it
// would be a mistake here, and not a fast run.
absl::Status PrintUse(const CellSummary& cell, const LabSpec& spec, const Rates& rates) {
  const std::string name = absl::StrFormat("%s: %s, %d workers, %s", cell.part, cell.exchange,
                                           cell.workers, cell.precision);
  if (spec.cluster.shared_gpu) {
    std::printf("%s: the workers share a GPU, so its times mean nothing\n", name.c_str());
    return absl::OkStatus();
  }
  if (!spec.compute.native()) {
    std::printf("%s: its compute is modelled\n", name.c_str());
    return absl::OkStatus();
  }
  const double flops = experiment::ModelFlopsOfSample(spec);
  const double achieved = cell.samples_per_second.median * flops / cell.workers;
  const double share = achieved / rates.at(cell.precision).flops;
  std::printf(
      "%s: %.4g samples/s x %.4g GFLOP a sample = %.4g TFLOP/s a worker, MFU %.1f %% of "
      "the measured %s rate\n",
      name.c_str(), cell.samples_per_second.median, flops * 1e-9, achieved * 1e-12, share * 100,
      cell.precision.c_str());
  return share <= 1 ? absl::OkStatus()
                    : Internal(
                          "%s: an MFU of %.1f %% cannot be: was the rate measured on the "
                          "device of the run, and alone?",
                          name, share * 100);
}

absl::Status Run(const DeviceFlags& flags) {
  ASSIGN_OR_RETURN(const auto device,
                   compute::MakeDevice(flags.device, {.threads = flags.threads}));
  std::printf("device: %s\n", std::string(device->name()).c_str());
  ASSIGN_OR_RETURN(const Rates rates, MeasureRates(*device));
  if (flags.run.empty()) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const experiment::RunSummary summary, ReadRecord(flags.run));
  ASSIGN_OR_RETURN(const Lab lab, LabOf(flags, summary));
  absl::Status status;
  for (const CellSummary& cell : summary.cells) {
    for (const experiment::Part& part : lab.parts) {
      const auto index = static_cast<std::size_t>(cell.cell);
      if (part.name == cell.part && !part.simulated && index < part.cells.size()) {
        status.Update(PrintUse(cell, part.cells[index].spec, rates));
      }
    }
  }
  return status;
}

}  // namespace

void AddDeviceCommand(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<DeviceFlags>();
  CLI::App* command = app.add_subcommand("device", "how fast a device is, and how much a run used");
  command->footer("Examples:\n  ranklab device --device cpu\n  ranklab device --run runs/gpu-1");
  command->add_option("--device", flags->device, "auto, cpu or cuda")->capture_default_str();
  command->add_option("--threads", flags->threads, "of a CPU")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("--run", flags->run,
                      "a folder that `ranklab run` left: the MFU of each of its rows");
  command->add_option("--set", flags->overrides, "PATH=VALUE that the run was given");
  command->callback([flags, &exit_code] {
    const absl::Status ended = Run(*flags);
    exit_code = ended.ok() ? kSuccess : Fail(ended);
  });
}

}  // namespace ranklab::cli
