#include "coordinator/host_clock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ranklab::coordinator {
namespace {

TEST(HostClock, IsTheSameInAnotherProcessOfThisMachine) {
  const std::string ours = HostClock();
  ASSERT_FALSE(ours.empty());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    _exit(HostClock() == ours ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace ranklab::coordinator
