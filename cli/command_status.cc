#include <cstdio>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <google/protobuf/util/json_util.h>

#include "cli/address.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "coordinator/lab_client.h"

namespace ranklab::cli {
namespace {

constexpr Nanos kConnectTimeout = std::chrono::seconds(5);

void PrintTable(const v1::StatusReply& status) {
  if (status.lab().empty()) {
    std::printf("no lab is running%s%s\n",
                status.verdict().empty() ? "" : "; the last one: ", status.verdict().c_str());
  } else {
    std::printf("lab %s, part %s, cell %d, repeat %d, generation %u, time scale %g\n",
                status.lab().c_str(), status.part().c_str(), status.cell(), status.repeat(),
                status.generation(), status.time_scale());
  }
  std::printf("%-8s %5s %-24s %8s %-14s %10s %12s\n", "role", "rank", "address", "step", "phase",
              "lag ms", "clock +- us");
  for (const v1::MemberStatus& member : status.members()) {
    const std::string rank = member.rank() < 0 ? "-" : std::to_string(member.rank());
    const std::string address = member.host() + ":" + std::to_string(member.grpc_port());
    std::printf("%-8s %5s %-24s %8lld %-14s %10.2f %12.1f\n",
                member.role() == v1::ROLE_WORKER ? "worker" : "server", rank.c_str(),
                address.c_str(), static_cast<long long>(member.step()), member.phase().c_str(),
                static_cast<double>(member.loop_lag_ns()) * 1e-6,
                static_cast<double>(member.clock_residual_ns()) * 1e-3);
  }
}

int PrintStatus(const std::string& address, bool json) {
  auto client = coordinator::LabClient::Connect(address, kConnectTimeout);
  if (!client.ok()) {
    return Fail(client.status());
  }
  const auto status = (*client)->Status();
  if (!status.ok()) {
    return Fail(status.status());
  }
  if (!json) {
    PrintTable(*status);
    return kSuccess;
  }
  std::string text;
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  if (!google::protobuf::util::MessageToJsonString(*status, &text, options).ok()) {
    return kFailedExpectation;
  }
  std::printf("%s\n", text.c_str());
  return kSuccess;
}

}  // namespace

void AddStatusCommand(CLI::App& app, int& exit_code) {
  struct Flags {
    std::string coordinator = "127.0.0.1:7070";
    bool json = false;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("status", "who is in the cluster and what they do");
  command->footer("Example:\n  ranklab status --coordinator 127.0.0.1:7070 --json");
  command->add_option("--coordinator", flags->coordinator, "its address, host:port")
      ->check(AddressMistake)
      ->capture_default_str();
  command->add_flag("--json", flags->json, "as JSON");
  command->callback(
      [flags, &exit_code] { exit_code = PrintStatus(flags->coordinator, flags->json); });
}

}  // namespace ranklab::cli
