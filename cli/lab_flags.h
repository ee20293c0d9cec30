// The flags of every command that takes a lab and leaves a record.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace ranklab::cli {

struct LabFlags {
  std::string lab;
  std::vector<std::string> overrides;
  std::string out = "runs";
  bool json = false;
};

// `flags` must outlive the parsing.
void AddLabFlags(CLI::App& command, LabFlags& flags);

}  // namespace ranklab::cli
