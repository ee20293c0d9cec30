#include "cli/launch_environment.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/status.h"

namespace ranklab::cli {
namespace {

using testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

absl::StatusOr<Launched> Read(const Variables& variables, const LaunchFlags& flags = {}) {
  return ReadLaunchEnvironment(flags, [&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string Refusal(const Variables& variables, const LaunchFlags& flags = {}) {
  const auto launched = Read(variables, flags);
  EXPECT_TRUE(absl::IsInvalidArgument(launched.status())) << launched.status();
  return MessageOf(launched.status());
}

TEST(LaunchEnvironment, SaysNothingWhereNothingLaunched) {
  const auto launched = Read({});
  ASSERT_TRUE(launched.ok());
  EXPECT_EQ(launched->role, Role::kWorker);
  EXPECT_FALSE(launched->rank.has_value());
  EXPECT_FALSE(launched->workers.has_value());
  EXPECT_EQ(launched->coordinator, "127.0.0.1:7070");
}

TEST(LaunchEnvironment, EveryLauncherSaysRankAndSize) {
  const Variables launchers[] = {
      {{"RANK", "2"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}},
      {{"SLURM_PROCID", "2"}, {"SLURM_NTASKS", "4"}, {"SLURM_LAUNCH_NODE_IPADDR", "node1"}},
      {{"OMPI_COMM_WORLD_RANK", "2"},
       {"OMPI_COMM_WORLD_SIZE", "4"},
       {"PMIX_RANK", "2"},
       {"RANKLAB_COORDINATOR", "node1:7070"}},
      {{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}, {"RANKLAB_COORDINATOR", "node1:7070"}},
      {{"JOB_COMPLETION_INDEX", "2"},
       {"RANKLAB_WORLD_SIZE", "4"},
       {"RANKLAB_COORDINATOR", "node1:7070"}}};
  for (const Variables& variables : launchers) {
    const auto launched = Read(variables);
    ASSERT_TRUE(launched.ok()) << launched.status();
    EXPECT_EQ(launched->rank, 2) << variables.begin()->first;
    EXPECT_EQ(launched->workers, 4) << variables.begin()->first;
    EXPECT_EQ(launched->coordinator, "node1:7070") << variables.begin()->first;
  }
}

TEST(LaunchEnvironment, ContradictionsAreRefusedByName) {
  EXPECT_THAT(Refusal({{"RANK", "1"}, {"SLURM_PROCID", "0"}}),
              HasSubstr("RANK=1 but SLURM_PROCID=0"));
  EXPECT_THAT(Refusal({{"RANK", "1"}}, {.role = {}, .rank = 2, .servers = {}, .coordinator = ""}),
              HasSubstr("--rank 2 but RANK=1"));
  EXPECT_THAT(Refusal({{"WORLD_SIZE", "4"}, {"SLURM_NTASKS", "8"}}),
              HasSubstr("WORLD_SIZE=4 but SLURM_NTASKS=8"));
  EXPECT_THAT(Refusal({{"RANK", "4"}, {"WORLD_SIZE", "4"}}), HasSubstr("RANK=4 but WORLD_SIZE=4"));
  EXPECT_THAT(Refusal({{"RANKLAB_ROLE", "ps"}},
                      {.role = Role::kWorker, .rank = {}, .servers = {}, .coordinator = ""}),
              HasSubstr("ranklab worker but RANKLAB_ROLE=ps"));
}

TEST(LaunchEnvironment, ValuesOfNoUseAreRefusedByName) {
  EXPECT_THAT(Refusal({{"RANK", "two"}}), HasSubstr("RANK=two is not a whole number from 0"));
  EXPECT_THAT(Refusal({{"RANK", "-1"}}), HasSubstr("RANK=-1"));
  EXPECT_THAT(Refusal({{"RANK", ""}}), HasSubstr("RANK= is not"));
  EXPECT_THAT(Refusal({{"WORLD_SIZE", "0"}}), HasSubstr("WORLD_SIZE=0"));
  EXPECT_THAT(Refusal({{"RANKLAB_ROLE", "chief"}}), HasSubstr("worker or ps"));
  EXPECT_THAT(Refusal({{"RANKLAB_COORDINATOR", "node1"}}), HasSubstr("node1:7070"));
}

TEST(LaunchEnvironment, ALauncherInsideAJobNumbersItsOwnProcesses) {
  const auto torchrun = Read({{"TORCHELASTIC_RUN_ID", "7"},
                              {"RANK", "3"},
                              {"WORLD_SIZE", "8"},
                              {"SLURM_PROCID", "0"},
                              {"SLURM_NTASKS", "2"}});
  ASSERT_TRUE(torchrun.ok()) << torchrun.status();
  EXPECT_EQ(torchrun->rank, 3);
  EXPECT_EQ(torchrun->workers, 8);
  const auto mpirun =
      Read({{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"SLURM_PROCID", "0"}});
  ASSERT_TRUE(mpirun.ok()) << mpirun.status();
  EXPECT_EQ(mpirun->rank, 3);
}

TEST(LaunchEnvironment, TheLastProcessesAreTheServers) {
  const LaunchFlags flags{.role = {}, .rank = {}, .servers = 2, .coordinator = ""};
  const auto worker = Read({{"RANK", "3"}, {"WORLD_SIZE", "6"}}, flags);
  ASSERT_TRUE(worker.ok()) << worker.status();
  EXPECT_EQ(worker->role, Role::kWorker);
  EXPECT_EQ(worker->rank, 3);
  EXPECT_EQ(worker->workers, 4);
  const auto server =
      Read({{"RANKLAB_SERVERS", "2"}, {"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "6"}});
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ(server->role, Role::kServer);
  EXPECT_EQ(server->rank, 1);
  EXPECT_THAT(Refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}}, flags),
              HasSubstr("--servers 2 but WORLD_SIZE=2; no worker is left"));
  EXPECT_THAT(Refusal({{"RANK", "0"}}, flags), HasSubstr("of how many"));
  EXPECT_THAT(Refusal({{"RANK", "0"}, {"WORLD_SIZE", "6"}, {"RANKLAB_ROLE", "ps"}}, flags),
              HasSubstr("RANKLAB_ROLE=ps but RANK=0"));
}

TEST(LaunchEnvironment, TorchrunsRoleIsOneWhereItNamesOne) {
  EXPECT_EQ(Read({{"ROLE_NAME", "ps"}})->role, Role::kServer);
  EXPECT_EQ(Read({{"ROLE_NAME", "default"}})->role, Role::kWorker);
}

TEST(LaunchEnvironment, TheCommandLinesCoordinatorHasTheLastWord) {
  const LaunchFlags flags{.role = {}, .rank = {}, .servers = {}, .coordinator = "here:1"};
  EXPECT_EQ(Read({{"RANKLAB_COORDINATOR", "there:2"}, {"MASTER_ADDR", "x"}}, flags)->coordinator,
            "here:1");
  EXPECT_EQ(Read({{"RANKLAB_COORDINATOR", "there:2"}, {"MASTER_ADDR", "x"}})->coordinator,
            "there:2");
  EXPECT_EQ(Read({{"MASTER_ADDR", "fd00::1"}})->coordinator, "[fd00::1]:7070");
}

}  // namespace
}  // namespace ranklab::cli
