#include <cstdio>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "cli/address.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "transport/grpc/health_check.h"

namespace ranklab::cli {
namespace {

constexpr Nanos kAnswerTimeout = std::chrono::seconds(3);

int PrintHealth(const std::string& address) {
  const auto serving = transport::AskWhetherServing(address, kAnswerTimeout);
  if (!serving.ok()) {
    return Fail(serving.status());
  }
  std::printf("%s: %s\n", address.c_str(), *serving ? "serving" : "not in a pool yet");
  return *serving ? kSuccess : kFailedExpectation;
}

}  // namespace

void AddHealthCommand(CLI::App& app, int& exit_code) {
  auto address = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "health", "does the coordinator, worker or parameter server at an address serve");
  command->footer(
      "Example:\n  ranklab health 127.0.0.1:7070\n"
      "Exit code: 0 it serves, 1 it answers and has not joined a pool yet, 3 nobody answers.");
  command->add_option("address", *address, "its gRPC address, host:port")
      ->required()
      ->check(AddressMistake);
  command->callback([address, &exit_code] { exit_code = PrintHealth(*address); });
}

}  // namespace ranklab::cli
