// The commands of the program: one file each, one line in main.cc.
#pragma once

namespace CLI {
class App;
}

namespace ranklab::cli {

// Each adds its subcommand; when that is chosen on the command line, `exit_code` is set by it.
void AddRunCommand(CLI::App& app, int& exit_code);
void AddSimulateCommand(CLI::App& app, int& exit_code);
void AddCoordinatorCommand(CLI::App& app, int& exit_code);
void AddWorkerCommand(CLI::App& app, int& exit_code);
void AddParameterServerCommand(CLI::App& app, int& exit_code);
void AddJoinCommand(CLI::App& app, int& exit_code);
void AddInjectCommand(CLI::App& app, int& exit_code);
void AddStatusCommand(CLI::App& app, int& exit_code);
void AddDeviceCommand(CLI::App& app, int& exit_code);
void AddHealthCommand(CLI::App& app, int& exit_code);
void AddReportCommand(CLI::App& app, int& exit_code);
void AddScheduleCommand(CLI::App& app, int& exit_code);
void AddCompareCommand(CLI::App& app, int& exit_code);
void AddCollectiveCommand(CLI::App& app, int& exit_code);
void AddCollectiveRankCommand(CLI::App& app, int& exit_code);

}  // namespace ranklab::cli
