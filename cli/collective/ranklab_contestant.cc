#include <algorithm>

#include "cli/collective/answering_processes.h"
#include "cli/collective/contestant.h"
#include "core/status.h"

namespace ranklab::cli {
namespace {

constexpr Nanos kStartTimeout = std::chrono::seconds(30);
constexpr Nanos kToFillAndCheck = std::chrono::seconds(60);

class RanklabContestant final : public Contestant {
 public:
  explicit RanklabContestant(const ContestantOptions& options) : options_(options) {}

  absl::Status Start() {
    for (int rank = 0; rank < options_.ranks; ++rank) {
      Launch launch{.name = absl::StrFormat("rank %d", rank),
                    .arguments = {"collective-rank", "--rank", std::to_string(rank), "--timeout",
                                  absl::StrFormat("%g", options_.timeout_seconds), "--spin",
                                  std::to_string(options_.spin_microseconds)}};
      if (options_.way == Way::kSharedMemory) {
        launch.arguments.push_back("--shared-memory");
      }
      if (options_.checksums) {
        launch.arguments.push_back("--checksums");
      }
      RETURN_IF_ERROR(ranks_.Start(std::move(launch)));
    }
    ASSIGN_OR_RETURN(const std::vector<std::string> ports, ranks_.Hear(kStartTimeout));
    std::string all;
    for (const std::string& port : ports) {
      all += (all.empty() ? "" : " ") + port;
    }
    RETURN_IF_ERROR(ranks_.Tell(all));
    return ranks_.Hear(kStartTimeout).status();
  }

  const std::string& name() const override { return name_; }
  std::string WhyNot(const Trial& trial) const override {
    return trial.in_place && trial.collective == collectives::Collective::kAllToAll
               ? "all-to-all is out of place only"
               : "";
  }

  absl::StatusOr<Measurement> Measure(const Trial& trial) override {
    RETURN_IF_ERROR(ranks_.Tell(TrialLine(trial)));
    ASSIGN_OR_RETURN(const std::vector<std::string> lines,
                     ranks_.Hear(TimeOf(trial, options_.timeout_seconds)));
    Measurement all;
    for (const std::string& line : lines) {
      ASSIGN_OR_RETURN(const Measurement one, ReadMeasurement(line));
      all.seconds = std::max(all.seconds, one.seconds);
      all.wrong += one.wrong;
    }
    return all;
  }

 private:
  const std::string name_ = "ranklab";
  const ContestantOptions options_;
  AnsweringProcesses ranks_;
};

}  // namespace

Nanos TimeOf(const Trial& trial, double timeout_seconds) {
  const double collectives = trial.warmup + trial.iterations + 4.0;  // the check, and the barriers
  return kToFillAndCheck + Nanos(static_cast<std::int64_t>(collectives * timeout_seconds * 1e9));
}

absl::StatusOr<std::unique_ptr<Contestant>> StartRanklab(const ContestantOptions& options) {
  auto contestant = std::make_unique<RanklabContestant>(options);
  RETURN_IF_ERROR(contestant->Start());
  return contestant;
}

}  // namespace ranklab::cli
