#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/address.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "coordinator/lab_client.h"
#include "core/status.h"
#include "experiment/lab_reader.h"

namespace ranklab::cli {
namespace {

constexpr Nanos kConnectTimeout = std::chrono::seconds(5);

struct InjectFlags {
  std::string coordinator = "127.0.0.1:7070";
  std::optional<int> rank;
  std::string slow;  // "backward=2x" or "backward=200ms"
  std::string pause;
  std::optional<int> every_steps;
  std::string link;
  std::string latency, jitter, bandwidth, loss;
  bool kill = false;
  bool reset = false;
  bool wall = false;
};

absl::StatusOr<std::string> SlowEntry(const std::string& slow) {
  const std::size_t equals = slow.find('=');
  if (equals == std::string::npos || equals + 1 == slow.size()) {
    return InvalidArgument(
        "--slow is \"%s\"; PHASE=FACTORx or PHASE=TIME, such as backward=2x or input=50ms", slow);
  }
  const std::string phase = slow.substr(0, equals);
  std::string amount = slow.substr(equals + 1);
  if (amount.back() == 'x') {
    amount.pop_back();
    return absl::StrFormat("slow: {phase: %s, factor: %s}", phase, amount);
  }
  return absl::StrFormat("slow: {phase: %s, extra: %s}", phase, amount);
}

// A flag that says how needs the one that says what.
absl::Status CheckCompanions(const InjectFlags& flags) {
  for (const auto& [name, value] :
       {std::pair{"--latency", &flags.latency}, std::pair{"--jitter", &flags.jitter},
        std::pair{"--bandwidth", &flags.bandwidth}, std::pair{"--loss", &flags.loss}}) {
    if (!value->empty() && flags.link.empty()) {
      return InvalidArgument("%s needs --link, such as --link 1-2 or --link 1-ps0", name);
    }
  }
  if (flags.every_steps.has_value() && flags.pause.empty()) {
    return InvalidArgument("--every-steps needs --pause, such as --pause 500ms");
  }
  return absl::OkStatus();
}

// The scenario entry that the flags stand for: one vocabulary for lab files and for live injection.
absl::StatusOr<std::string> EntryOf(const InjectFlags& flags) {
  RETURN_IF_ERROR(CheckCompanions(flags));
  std::vector<std::string> parts;
  if (flags.rank.has_value()) {
    parts.push_back(absl::StrFormat("rank: %d", *flags.rank));
  }
  if (!flags.slow.empty()) {
    ASSIGN_OR_RETURN(std::string slow, SlowEntry(flags.slow));
    parts.push_back(std::move(slow));
  }
  const auto add = [&parts](const char* key, const std::string& value) {
    if (!value.empty()) {
      parts.push_back(std::string(key) + ": " + value);
    }
  };
  add("pause", flags.pause);
  if (flags.every_steps.has_value()) {
    parts.push_back(absl::StrFormat("every_steps: %d", *flags.every_steps));
  }
  add("link", flags.link.empty() ? "" : '"' + flags.link + '"');
  add("latency", flags.latency);
  add("jitter", flags.jitter);
  add("bandwidth", flags.bandwidth);
  add("loss", flags.loss);
  add("kill", flags.kill ? "true" : "");
  add("reset", flags.reset ? "true" : "");
  std::string entry = "{";
  for (const std::string& part : parts) {
    entry += (entry.size() > 1 ? ", " : "") + part;
  }
  entry += "}";
  // Refused here, before anything is asked of a cluster.
  RETURN_IF_ERROR(experiment::ReadInjection(entry).status());
  return entry;
}

int RunInject(const InjectFlags& flags) {
  const absl::StatusOr<std::string> entry = EntryOf(flags);
  if (!entry.ok()) {
    return Fail(entry.status());
  }
  auto client = coordinator::LabClient::Connect(flags.coordinator, kConnectTimeout);
  if (!client.ok()) {
    return Fail(client.status());
  }
  v1::InjectRequest request;
  request.set_text(*entry);
  request.set_reset(flags.reset);
  request.set_wall(flags.wall);
  const auto reply = (*client)->Inject(request);
  if (!reply.ok()) {
    return Fail(reply.status());
  }
  std::printf("injection %llu: %s (told %d processes)\n",
              static_cast<unsigned long long>(reply->id()), reply->applied().c_str(),
              reply->ranks());
  return kSuccess;
}

}  // namespace

void AddInjectCommand(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<InjectFlags>();
  CLI::App* command = app.add_subcommand("inject", "make something go wrong in a running lab");
  command->footer(
      "Examples:\n"
      "  ranklab inject --rank 2 --slow backward=2x\n"
      "  ranklab inject --rank 1 --pause 500ms\n"
      "  ranklab inject --link 1-2 --latency 5ms\n"
      "  ranklab inject --link 1-ps0 --bandwidth 1GB/s\n"
      "  ranklab inject --rank 3 --kill\n"
      "  ranklab inject --reset\n"
      "Times are the modelled cluster's; the reply says how long that is here.");
  command->add_option("--coordinator", flags->coordinator, "its address, host:port")
      ->check(AddressMistake)
      ->capture_default_str();
  command->add_option("--rank", flags->rank, "the worker it hits");
  command->add_option("--slow", flags->slow,
                      "PHASE=FACTORx or PHASE=TIME; input, forward, backward, optimizer");
  command->add_option("--pause", flags->pause, "stop for a time, once");
  command->add_option("--every-steps", flags->every_steps, "repeat the pause every so many steps");
  command->add_option("--link", flags->link,
                      "1-2 in both directions, 1->2 in one; ps0 is server 0: 1-ps0");
  command->add_option("--latency", flags->latency, "of the link, such as 5ms");
  command->add_option("--jitter", flags->jitter, "added to it, uniform in [0, jitter]");
  command->add_option("--bandwidth", flags->bandwidth, "of the link, such as 1GB/s or 10Gbit/s");
  command->add_option("--loss", flags->loss, "share of messages that come a time-out later");
  command->add_flag("--kill", flags->kill, "end the worker's process with SIGKILL");
  command->add_flag("--reset", flags->reset, "everything back to clean");
  command->add_flag("--wall", flags->wall, "allow more than 60 s of wall time");
  command->callback([flags, &exit_code] { exit_code = RunInject(*flags); });
}

}  // namespace ranklab::cli
