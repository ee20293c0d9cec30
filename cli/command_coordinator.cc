#include <memory>

#include <CLI/CLI.hpp>

#include "cli/address.h"
#include "cli/commands.h"
#include "cli/coordinator_process.h"

namespace ranklab::cli {

void AddCoordinatorCommand(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<CoordinatorProcessOptions>();
  CLI::App* command =
      app.add_subcommand("coordinator", "the coordinator of a cluster, in this process");
  command->footer("Example:\n  ranklab coordinator --listen 0.0.0.0:7070");
  command->add_option("--listen", options->listen, "address of the gRPC server")
      ->check(AddressToListenMistake)
      ->capture_default_str();
  CLI::Option* once =
      command->add_flag("--once", options->once, "end with the first lab, with its exit code");
  command
      ->add_flag("--keep-pool", options->keep_pool,
                 "a lost member ends the lab alone; else it ends every process")
      ->excludes(once);
  command
      ->add_option("--announce-fd", options->announce_fd,
                   "file descriptor to write the port to, once it listens")
      ->group("");
  command->callback([options, &exit_code] { exit_code = RunCoordinatorProcess(*options); });
}

}  // namespace ranklab::cli
