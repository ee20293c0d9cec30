#include <CLI/CLI.hpp>
#include <sys/prctl.h>

#include "cli/build_id.h"
#include "cli/commands.h"
#include "cli/exit_code.h"

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
  ranklab::cli::AddInjectCommand(app, exit_code);
  ranklab::cli::AddStatusCommand(app, exit_code);
  ranklab::cli::AddScheduleCommand(app, exit_code);
  ranklab::cli::AddCollectiveCommand(app, exit_code);
  ranklab::cli::AddCollectiveRankCommand(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help and version end well; everything else is a mistake in the input.
    return app.exit(error) == 0 ? ranklab::cli::kSuccess : ranklab::cli::kWrongInput;
  }
  return exit_code;
}
