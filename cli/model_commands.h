// The commands that ask the models of sim/: they start no process and write no file.
#pragma once

namespace CLI {
class App;
}

namespace ranklab::cli {

void AddPlanCommand(CLI::App& app, int& exit_code);
void AddFailuresCommand(CLI::App& app, int& exit_code);
void AddValidateCommand(CLI::App& app, int& exit_code);

}  // namespace ranklab::cli
