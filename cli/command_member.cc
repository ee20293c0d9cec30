#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "cli/address.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/launch_environment.h"
#include "cli/member_process.h"
#include "cli/signals.h"

namespace ranklab::cli {
namespace {

struct MemberFlags {
  MemberProcessOptions process;
  LaunchFlags launch;
  double join_timeout_seconds = 30;
};

int RunMember(MemberFlags flags) {
  BlockEndingSignals();
  // What launched `ranklab run` says nothing about the members that it starts itself.
  const bool started_by_run = flags.process.no_last_word;
  const auto launched = ReadLaunchEnvironment(flags.launch, [started_by_run](const char* name) {
    return started_by_run ? nullptr : std::getenv(name);
  });
  if (!launched.ok()) {
    return Fail(launched.status());
  }
  flags.process.role = launched->role;
  flags.process.rank = launched->rank;
  flags.process.launched = launched->workers.value_or(0);
  flags.process.coordinator = launched->coordinator;
  flags.process.join_timeout = Nanos(static_cast<std::int64_t>(flags.join_timeout_seconds * 1e9));
  return RunMemberProcess(flags.process);
}

// Without a role: the launch environment says it.
void AddMemberCommand(CLI::App& app, std::optional<Role> role, const char* name, const char* words,
                      int& exit_code) {
  auto flags = std::make_shared<MemberFlags>();
  flags->launch.role = role;
  CLI::App* command = app.add_subcommand(name, words);
  command->footer(
      std::string("Example:\n  ranklab ") + name +
      " --coordinator coordinator:7070\n"
      "The rank comes from --rank or the launch environment (RANK, SLURM_PROCID,\n"
      "OMPI_COMM_WORLD_RANK, PMI_RANK, JOB_COMPLETION_INDEX), else in order of joining.\n"
      "The coordinator is at --coordinator, RANKLAB_COORDINATOR, or port 7070 of MASTER_ADDR\n"
      "or SLURM_LAUNCH_NODE_IPADDR, else of this machine. docs/launchers.md says it all.");
  command
      ->add_option("--coordinator", flags->launch.coordinator,
                   "its address, host:port; else as the launch environment says")
      ->check(AddressMistake);
  command->add_option("--listen", flags->process.listen, "address of this process's gRPC server")
      ->check(AddressToListenMistake)
      ->capture_default_str();
  command->add_option("--tcp-port", flags->process.tcp_port, "port of the TCP wire; 0 is any")
      ->check(CLI::Range(0, 65535));
  command->add_option("--advertise", flags->process.advertise, "host that peers can reach");
  command->add_option("--rank", flags->launch.rank, "wanted rank")->check(CLI::NonNegativeNumber);
  if (!role.has_value()) {
    command
        ->add_option("--servers", flags->launch.servers,
                     "how many of the launched processes, the last, are parameter servers")
        ->check(CLI::NonNegativeNumber);
  }
  command->add_flag("--once", flags->process.once, "end with the next lab, with its exit code");
  // Given by `ranklab run` to the members it starts itself: it has the last word.
  command->add_flag("--no-last-word", flags->process.no_last_word)->group("");
  command
      ->add_option("--join-timeout", flags->join_timeout_seconds,
                   "seconds to wait for the coordinator")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->callback([flags, &exit_code] { exit_code = RunMember(*flags); });
}

}  // namespace

void AddWorkerCommand(CLI::App& app, int& exit_code) {
  AddMemberCommand(app, Role::kWorker, "worker", "a worker, in this process", exit_code);
}

void AddParameterServerCommand(CLI::App& app, int& exit_code) {
  AddMemberCommand(app, Role::kServer, "ps", "a parameter server, in this process", exit_code);
}

void AddJoinCommand(CLI::App& app, int& exit_code) {
  AddMemberCommand(app, std::nullopt, "join",
                   "a worker or a parameter server, as torchrun, srun, mpirun or a Kubernetes job "
                   "launched it",
                   exit_code);
}

}  // namespace ranklab::cli
