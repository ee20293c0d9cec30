#include "worker/assignment.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/status.h"
#include "experiment/lab_reader.h"
#include "worker/modelled_step.h"
#include "worker/predict.h"

namespace ranklab::worker {
namespace {

constexpr Nanos kConnectTimeout = std::chrono::seconds(15);

std::vector<MemberAddress> Addresses(
    const google::protobuf::RepeatedPtrField<v1::GenerationMember>& members) {
  std::vector<MemberAddress> addresses;
  for (const v1::GenerationMember& member : members) {
    addresses.push_back(
        {member.host(), static_cast<int>(member.grpc_port()), static_cast<int>(member.tcp_port())});
  }
  return addresses;
}

// A rehearsal's network delays nothing, but its messages are stamped and timed. (Without any alpha
// there would be no model, and nothing to time.)
constexpr fabric::LinkSpec kRehearsalPort{.alpha = Nanos(1),
                                          .bandwidth = {std::numeric_limits<double>::infinity()}};

// Natively and undisturbed, in step with one another and without overlap, so that what the compute
// and the exchange take on this machine show each by itself.
void MakeCalibration(experiment::LabSpec& spec) {
  spec.fabric.preset = "native";
  spec.compute.model = "native";
  if (auto* ps = std::get_if<experiment::ParameterServerSpec>(&spec.exchange.kind)) {
    ps->staleness_bound = 0;
  }
  spec.exchange.overlap = false;
  spec.exchange.barrier = true;
  spec.train.steps = kCalibrationSteps;
  spec.scenario = {};
}

absl::StatusOr<experiment::LabSpec> PickCell(const experiment::Lab& lab,
                                             const v1::Assignment& assignment) {
  for (const experiment::Part& part : lab.parts) {
    if (part.name == assignment.part() && assignment.cell() >= 0 &&
        assignment.cell() < static_cast<std::int64_t>(part.cells.size())) {
      return part.cells[static_cast<std::size_t>(assignment.cell())].spec;
    }
  }
  return InvalidArgument("lab %s has no cell %d in part %s", lab.name, assignment.cell(),
                         assignment.part());
}

}  // namespace

absl::StatusOr<CellAssignment> ReadAssignment(const v1::Assignment& assignment, Nanos now,
                                              Nanos clock_offset) {
  const std::vector<std::string> overrides(assignment.overrides().begin(),
                                           assignment.overrides().end());
  ASSIGN_OR_RETURN(const experiment::Lab lab,
                   experiment::ReadLab(assignment.lab_text(), assignment.lab_name(), overrides));
  if (lab.hash != assignment.lab_hash()) {
    return InvalidArgument("the lab text hashes to %s here, to %s at the coordinator", lab.hash,
                           assignment.lab_hash());
  }
  CellAssignment cell;
  cell.lab_hash = lab.hash;
  ASSIGN_OR_RETURN(cell.spec, PickCell(lab, assignment));
  cell.spec.cluster.workers = assignment.workers_size();
  cell.spec.cluster.servers = assignment.servers_size();
  if (assignment.calibrate()) {
    MakeCalibration(cell.spec);
  }
  NetworkOptions& network = cell.network;
  network.self = {assignment.role() == v1::ROLE_WORKER ? Role::kWorker : Role::kServer,
                  assignment.rank()};
  network.generation = assignment.generation();
  network.secret = assignment.secret();
  network.workers = Addresses(assignment.workers());
  network.servers = Addresses(assignment.servers());
  network.time_scale = assignment.calibrate() ? 1.0 : assignment.time_scale();
  ASSIGN_OR_RETURN(network.port, PortOf(cell.spec.fabric, network.time_scale));
  if (assignment.calibrate()) {
    network.port = kRehearsalPort;
  }
  network.seed = cell.spec.seed;
  network.clock_offset = clock_offset;
  network.deadline = now + kConnectTimeout;
  return cell;
}

Nanos ExchangeTimeout(const experiment::LabSpec& spec, double time_scale) {
  if (spec.exchange.timeout > Nanos::zero()) {
    return spec.exchange.timeout;
  }
  constexpr double kLeast = 30.0;
  constexpr double kTimes = 20.0;
  double seconds = kLeast;
  // A disturbed or asynchronous step has no closed form; the undisturbed one is the yardstick.
  experiment::LabSpec undisturbed = spec;
  undisturbed.scenario = {};
  if (const auto predicted = EstimateStep(undisturbed); predicted.ok()) {
    seconds = std::max(seconds, kTimes * predicted->step * time_scale);
  }
  return Nanos(std::llround(seconds * 1e9));
}

}  // namespace ranklab::worker
