#include "tests/cluster/program.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ranklab::cluster_test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kMarkVariable = "RANKLAB_TEST_PROGRAM=";
// A launcher that runs the tests must not decide the ranks of what they start.
constexpr std::string_view kRankVariables[] = {
    "RANK=",     "SLURM_PROCID=", "OMPI_COMM_WORLD_RANK=",
    "PMI_RANK=", "PMIX_RANK=",    "JOB_COMPLETION_INDEX="};

bool BelongsToTheLauncher(std::string_view entry) {
  for (const std::string_view name : kRankVariables) {
    if (entry.starts_with(name)) {
      return true;
    }
  }
  return entry.starts_with(kMarkVariable);
}

std::vector<std::string> EnvironmentWith(const Environment& extra, const std::string& mark) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!BelongsToTheLauncher(*entry)) {
      entries.emplace_back(*entry);
    }
  }
  for (const auto& [name, value] : extra) {
    entries.push_back(name + "=" + value);
  }
  entries.push_back(mark);
  return entries;
}

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) {
    pointers.push_back(word.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> SplitAtZeros(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, '\0');) {
    words.push_back(word);
  }
  return words;
}

// The fourth field of /proc/PID/stat; the second, a name in brackets, may hold anything.
pid_t ParentOf(const std::string& folder) {
  const std::string stat = ReadText(folder + "/stat");
  const std::size_t bracket = stat.rfind(')');
  std::istringstream rest(bracket == std::string::npos ? "" : stat.substr(bracket + 1));
  char state = 0;
  pid_t parent = 0;
  rest >> state >> parent;
  return parent;
}

// A zombie has an empty environment: it is no longer alive.
std::vector<ProcessSeen> ProcessesWith(const std::string& mark) {
  std::vector<ProcessSeen> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) {
      continue;
    }
    const std::string folder = entry.path();
    for (const std::string& variable : SplitAtZeros(ReadText(folder + "/environ"))) {
      if (variable == mark) {
        found.push_back({.pid = static_cast<pid_t>(std::stol(name)),
                         .parent = ParentOf(folder),
                         .arguments = SplitAtZeros(ReadText(folder + "/cmdline"))});
        break;
      }
    }
  }
  return found;
}

// In the child: only async-signal-safe calls.
[[noreturn]] void Exec(char* const* arguments, char* const* environment, const char* out,
                       const char* err) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that is killed for its time takes the program along
  const int flags = O_WRONLY | O_CREAT | O_TRUNC;
  const int out_fd = open(out, flags, 0600);
  const int err_fd = open(err, flags, 0600);
  const int in_fd = open("/dev/null", O_RDONLY);
  if (out_fd < 0 || err_fd < 0 || in_fd < 0) {
    _exit(126);
  }
  dup2(in_fd, STDIN_FILENO);
  dup2(out_fd, STDOUT_FILENO);
  dup2(err_fd, STDERR_FILENO);
  execve(RANKLAB_PROGRAM, arguments, environment);
  _exit(127);
}

}  // namespace

bool WaitUntil(const std::function<bool()>& condition, Seconds limit) {
  const Clock::time_point deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(limit);
  while (!condition()) {
    if (Clock::now() >= deadline) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

TemporaryFolder::TemporaryFolder() {
  std::string name = ::testing::TempDir() + "ranklab_cluster_XXXXXX";
  if (mkdtemp(name.data()) == nullptr) {
    ADD_FAILURE() << "mkdtemp " << name << ": " << std::strerror(errno);
    std::abort();
  }
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::Write(const std::string& name, const std::string& text) const {
  const std::string path = path_ + "/" + name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string ProcessSeen::ValueOf(const std::string& flag) const {
  for (std::size_t i = 0; i + 1 < arguments.size(); ++i) {
    if (arguments[i] == flag) {
      return arguments[i + 1];
    }
  }
  return "";
}

std::string Describe(const std::vector<ProcessSeen>& processes) {
  std::string text;
  for (const ProcessSeen& process : processes) {
    text += "process " + std::to_string(process.pid) + ":";
    for (const std::string& argument : process.arguments) {
      text += " " + argument;
    }
    text += "\n";
  }
  return text;
}

Program::Program(std::vector<std::string> arguments, Environment environment) {
  static int started = 0;
  mark_ = std::string(kMarkVariable) + std::to_string(getpid()) + "-" + std::to_string(++started);
  arguments.insert(arguments.begin(), "ranklab");
  std::vector<std::string> variables = EnvironmentWith(environment, mark_);
  const std::vector<char*> words = Pointers(arguments);
  const std::vector<char*> settings = Pointers(variables);
  const std::string out = streams_.path() + "/out";
  const std::string err = streams_.path() + "/err";
  pid_ = fork();
  if (pid_ == 0) {
    Exec(words.data(), settings.data(), out.c_str(), err.c_str());
  }
  if (pid_ < 0) {
    ADD_FAILURE() << "fork: " << std::strerror(errno);
    std::abort();
  }
}

Program::~Program() {
  KillAll();
  if (!ended_) {
    waitpid(pid_, &wait_status_, 0);
  }
}

std::string Program::out() const { return ReadText(streams_.path() + "/out"); }
std::string Program::err() const { return ReadText(streams_.path() + "/err"); }

std::vector<ProcessSeen> Program::Alive() const { return ProcessesWith(mark_); }

ProcessSeen Program::Find(const std::string& role, int rank) const {
  for (ProcessSeen& process : Alive()) {
    if (process.arguments.size() > 1 && process.arguments[1] == role &&
        (rank < 0 || process.ValueOf("--rank") == std::to_string(rank))) {
      return std::move(process);
    }
  }
  return {};
}

void Program::Signal(int signal) const { kill(pid_, signal); }

bool Program::HasEnded() {
  ended_ = ended_ || waitpid(pid_, &wait_status_, WNOHANG) == pid_;
  return ended_;
}

Ending Program::Wait(Seconds limit) {
  const Clock::time_point from = Clock::now();
  Ending ending{.in_time = WaitUntil([this] { return HasEnded(); }, limit)};
  ending.waited = Clock::now() - from;
  if (!ending.in_time) {
    KillAll();
    waitpid(pid_, &wait_status_, 0);
    ended_ = true;
  }
  ending.exit_code =
      WIFEXITED(wait_status_) ? WEXITSTATUS(wait_status_) : 128 + WTERMSIG(wait_status_);
  return ending;
}

std::vector<ProcessSeen> Program::LeftAfter(Seconds limit) const {
  WaitUntil([this] { return Alive().empty(); }, limit);
  return Alive();
}

void Program::KillAll() {
  for (const ProcessSeen& process : Alive()) {
    kill(process.pid, SIGKILL);  // a stopped one takes it too
  }
}

Finished RunToEnd(std::vector<std::string> arguments, Seconds limit, Environment environment) {
  Program program(std::move(arguments), std::move(environment));
  const Ending ending = program.Wait(limit);
  Finished finished{.exit_code = ending.exit_code, .out = program.out(), .err = program.err()};
  EXPECT_TRUE(ending.in_time) << "not over after " << limit.count() << " s\n"
                              << finished.out << finished.err;
  return finished;
}

}  // namespace ranklab::cluster_test
