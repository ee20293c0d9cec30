#include "cli/lab_flags.h"

#include <CLI/CLI.hpp>

namespace ranklab::cli {

void AddLabFlags(CLI::App& command, LabFlags& flags) {
  command.add_option("lab", flags.lab, "the lab file")->required();
  command.add_option("--set", flags.overrides, "PATH=VALUE, on every part; may be repeated");
  command.add_option("--out", flags.out, "folder for records; this run's is NAME-TIME below it")
      ->capture_default_str();
  command.add_flag("--json", flags.json, "print the summary as JSON in place of the table");
}

}  // namespace ranklab::cli
