#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <absl/status/status.h>
#include <sys/prctl.h>

#include "cli/build_id.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/model_commands.h"
#include "core/nearest.h"
#include "core/status.h"

namespace {

// CLI11 says only that a command is required. Commands without a group are for our own processes.
absl::Status CheckCommand(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == word) {
      return absl::OkStatus();
    }
    if (!command->get_group().empty()) {
      names.push_back(command->get_name());
    }
  }
  if (word.starts_with('-')) {
    return absl::OkStatus();
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  const std::string advice = ranklab::DidYouMean(word, known);
  return ranklab::InvalidArgument("\"%s\" is no command%s", word,
                                  advice.empty() ? "; " + ranklab::OneOf(known) : advice);
}

}  // namespace

int main(int argc, char** argv) {
  // Services are started by way of /proc/self/exe, which would be their name in ps and pgrep.
  prctl(PR_SET_NAME, "ranklab");
  CLI::App app{
      "ranklab: a lab bench for distributed training. Coordinator, workers and parameter servers\n"
      "talk gRPC and train for real; a lab file says what to train, how gradients are exchanged,\n"
      "over which network, and what goes wrong when.",
      "ranklab"};
  app.set_version_flag("--version", ranklab::cli::kBuild);
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);
  int exit_code = ranklab::cli::kSuccess;
  ranklab::cli::AddRunCommand(app, exit_code);
  ranklab::cli::AddSimulateCommand(app, exit_code);
  ranklab::cli::AddReportCommand(app, exit_code);
  ranklab::cli::AddCompareCommand(app, exit_code);
  ranklab::cli::AddCoordinatorCommand(app, exit_code);
  ranklab::cli::AddWorkerCommand(app, exit_code);
  ranklab::cli::AddParameterServerCommand(app, exit_code);
  ranklab::cli::AddJoinCommand(app, exit_code);
  ranklab::cli::AddInjectCommand(app, exit_code);
  ranklab::cli::AddStatusCommand(app, exit_code);
  ranklab::cli::AddDeviceCommand(app, exit_code);
  ranklab::cli::AddHealthCommand(app, exit_code);
  ranklab::cli::AddScheduleCommand(app, exit_code);
  ranklab::cli::AddPlanCommand(app, exit_code);
  ranklab::cli::AddFailuresCommand(app, exit_code);
  ranklab::cli::AddValidateCommand(app, exit_code);
  ranklab::cli::AddCollectiveCommand(app, exit_code);
  ranklab::cli::AddCollectiveRankCommand(app, exit_code);
  if (const absl::Status known = argc > 1 ? CheckCommand(app, argv[1]) : absl::OkStatus();
      !known.ok()) {
    return ranklab::cli::Fail(known);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help and version end well; everything else is a mistake in the input.
    return app.exit(error) == 0 ? ranklab::cli::kSuccess : ranklab::cli::kWrongInput;
  }
  return exit_code;
}
