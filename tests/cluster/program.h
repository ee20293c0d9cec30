// The real program as a subprocess: started with arguments and a folder of its own, waited for with
// a deadline, looked at from outside. Everything it starts carries a mark in its environment, so a
// process that was left behind is found whoever its parent is by then, and is ended with the test.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace ranklab::cluster_test {

using Seconds = std::chrono::duration<double>;

// Asks `condition` every few milliseconds; false: it did not come true within `limit`.
bool WaitUntil(const std::function<bool()>& condition, Seconds limit);

// Removed with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  // Returns the file's path.
  std::string Write(const std::string& name, const std::string& text) const;

 private:
  std::string path_;
};

std::string ReadText(const std::string& path);  // empty when there is none

// A living process (not a zombie) that a Program led to.
struct ProcessSeen {
  pid_t pid = 0;
  pid_t parent = 0;
  std::vector<std::string> arguments{};  // "ranklab", "worker", "--rank", "2", ...

  // The word after `flag`; empty when it is not there.
  std::string ValueOf(const std::string& flag) const;
};
std::string Describe(const std::vector<ProcessSeen>& processes);

struct Ending {
  bool in_time = false;  // false: it was killed because the deadline had passed
  int exit_code = -1;    // 128 + N when signal N ended it
  Seconds waited{};      // from the call of Wait
};

using Environment = std::vector<std::pair<std::string, std::string>>;

class Program {
 public:
  // Starts `ranklab ARGUMENTS`, with its two streams going to files of its own.
  explicit Program(std::vector<std::string> arguments, Environment environment = {});
  ~Program();  // kills whatever is left of it
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t pid() const { return pid_; }
  std::string out() const;
  std::string err() const;

  // Itself, as long as it runs, and all that it started, directly or not.
  std::vector<ProcessSeen> Alive() const;
  // Of Alive: the one whose command is `role` ("coordinator", "worker", "ps") and, unless it is
  // negative, whose --rank is `rank`. pid 0: there is none.
  ProcessSeen Find(const std::string& role, int rank = -1) const;

  void Signal(int signal) const;
  // Requires: not waited for yet.
  Ending Wait(Seconds limit);
  // What is still alive of it after at most `limit`; empty is what a test wants.
  std::vector<ProcessSeen> LeftAfter(Seconds limit) const;

 private:
  bool HasEnded();
  void KillAll();

  TemporaryFolder streams_;
  std::string mark_;
  pid_t pid_ = 0;
  bool ended_ = false;
  int wait_status_ = 0;
};

// Runs it to its end. The test fails when that does not come within `limit`.
struct Finished {
  int exit_code = -1;
  std::string out{};
  std::string err{};
};
Finished RunToEnd(std::vector<std::string> arguments, Seconds limit, Environment environment = {});

}  // namespace ranklab::cluster_test
