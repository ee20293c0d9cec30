#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/collective/answering_processes.h"
#include "cli/collective/contestant.h"
#include "core/status.h"

namespace ranklab::cli {
namespace {

using collectives::Collective;

constexpr Nanos kStartTimeout = std::chrono::seconds(60);  // mpirun is slow on busy cores

// Where the build puts the rivals: bench/rivals beside this program.
absl::StatusOr<std::string> RivalProgram(const std::string& name, const std::string& packages) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink(kThisProgram, error);
  const std::filesystem::path program = self.parent_path() / "bench" / "rivals" / name;
  if (error || !std::filesystem::exists(program, error)) {
    return NotFound(
        "--rivals: %s is not there; apt-get install %s, then cmake --preset release && cmake "
        "--build --preset release",
        program.string(), packages);
  }
  return program.string();
}

// bench/rivals/rival.h reads it.
std::string RivalLine(const Trial& trial) {
  return absl::StrFormat("%s %d %d %d %d %d", NcclName(trial.collective), trial.count,
                         static_cast<int>(trial.in_place), trial.warmup, trial.iterations,
                         static_cast<int>(trial.check));
}

// Rivals are asked for the common case alone.
std::string WhyNoRival(const Trial& trial) {
  if (trial.dtype != compute::DType::kFloat32 || trial.op != compute::ReduceOp::kSum) {
    return "rivals run float and sum only";
  }
  if (trial.root != 0) {
    return "rivals run root 0 only";
  }
  if (trial.count > std::numeric_limits<int>::max()) {
    return "rivals run counts below 2^31 only";
  }
  return "";
}

// A folder of its own below the system's, gone with it.
class TemporaryFolder {
 public:
  absl::Status Make() {
    std::string name = (std::filesystem::temp_directory_path() / "ranklab-rival-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      return Internal("mkdtemp %s: %s", name, std::strerror(errno));
    }
    path_ = name;
    return absl::OkStatus();
  }
  ~TemporaryFolder() { Remove(); }
  void Remove() {
    std::error_code ignored;
    if (!path_.empty()) {
      std::filesystem::remove_all(path_, ignored);
    }
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class Rival : public Contestant {
 public:
  Rival(std::string name, const ContestantOptions& options)
      : name_(std::move(name)), options_(options) {}

  const std::string& name() const override { return name_; }

  absl::StatusOr<Measurement> Measure(const Trial& trial) override {
    RETURN_IF_ERROR(processes_.Tell(RivalLine(trial)));
    const auto lines = processes_.Hear(TimeOf(trial, options_.timeout_seconds));
    if (!lines.ok()) {
      return Annotate(lines.status(), name_);
    }
    Measurement all;
    for (const std::string& line : *lines) {
      ASSIGN_OR_RETURN(const Measurement one, ReadMeasurement(line));
      all.seconds = std::max(all.seconds, one.seconds);
      all.wrong += one.wrong;
    }
    return all;
  }

 protected:
  // The folder has served once all ranks are there.
  absl::Status HearReady() {
    const absl::Status heard = processes_.Hear(kStartTimeout).status();
    folder_.Remove();
    return Annotate(heard, name_);
  }

  const std::string name_;
  const ContestantOptions options_;
  TemporaryFolder folder_;
  AnsweringProcesses processes_;
};

class OpenMpi final : public Rival {
 public:
  explicit OpenMpi(const ContestantOptions& options)
      : Rival(options.way == Way::kTcp ? "Open MPI tcp" : "Open MPI vader", options) {}

  absl::Status Start() {
    ASSIGN_OR_RETURN(const std::string program,
                     RivalProgram("openmpi_rival", "libopenmpi-dev openmpi-bin"));
    RETURN_IF_ERROR(folder_.Make());
    for (int rank = 0; rank < options_.ranks; ++rank) {
      const std::string pipe = folder_.path() + "/" + std::to_string(rank);
      // Open for both ways, so that neither side waits for the other to open it.
      const int fd = mkfifo(pipe.c_str(), 0600) == 0 ? open(pipe.c_str(), O_RDWR | O_CLOEXEC) : -1;
      if (fd < 0) {
        return Internal("%s: %s", pipe, std::strerror(errno));
      }
      processes_.AlsoTell(fd);
    }
    RETURN_IF_ERROR(
        processes_.Start({.name = "mpirun",
                          .program = "mpirun",
                          .arguments = {"--allow-run-as-root", "--oversubscribe", "--bind-to",
                                        "none", "--mca", "pml", "ob1", "--mca", "btl",
                                        options_.way == Way::kTcp ? "tcp,self" : "vader,self",
                                        "--mca", "btl_tcp_if_include", "lo", "-np",
                                        std::to_string(options_.ranks), program, folder_.path()}},
                         /*told=*/false));
    return HearReady();
  }

  std::string WhyNot(const Trial& trial) const override {
    if (trial.in_place && trial.collective == Collective::kAllToAll) {
      return "all-to-all is out of place only";
    }
    return WhyNoRival(trial);
  }
};

class Gloo final : public Rival {
 public:
  explicit Gloo(const ContestantOptions& options) : Rival("gloo ring", options) {}

  absl::Status Start() {
    ASSIGN_OR_RETURN(const std::string program, RivalProgram("gloo_rival", "libgloo-dev"));
    RETURN_IF_ERROR(folder_.Make());
    for (int rank = 0; rank < options_.ranks; ++rank) {
      RETURN_IF_ERROR(processes_.Start(
          {.name = absl::StrFormat("gloo's rank %d", rank),
           .program = program,
           .arguments = {std::to_string(rank), std::to_string(options_.ranks), folder_.path()}}));
    }
    return HearReady();
  }

  std::string WhyNot(const Trial& trial) const override {
    if (trial.collective != Collective::kAllReduce && trial.collective != Collective::kAllGather &&
        trial.collective != Collective::kBroadcast) {
      return absl::StrFormat("gloo is compared in all_reduce, all_gather and broadcast, not in %s",
                             NcclName(trial.collective));
    }
    return WhyNoRival(trial);
  }
};

template <typename T>
absl::StatusOr<std::unique_ptr<Contestant>> StartRival(const ContestantOptions& options) {
  auto rival = std::make_unique<T>(options);
  RETURN_IF_ERROR(rival->Start());
  return rival;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Contestant>> StartOpenMpi(const ContestantOptions& options) {
  return StartRival<OpenMpi>(options);
}

absl::StatusOr<std::unique_ptr<Contestant>> StartGloo(const ContestantOptions& options) {
  return StartRival<Gloo>(options);
}

}  // namespace ranklab::cli
