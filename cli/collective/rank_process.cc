#include "cli/collective/rank_process.h"

#include <cstdio>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "cli/child_processes.h"
#include "cli/collective/trial.h"
#include "cli/collective/trial_buffers.h"
#include "cli/exit_code.h"
#include "collectives/communicator.h"
#include "collectives/cpu_reducer.h"
#include "core/run_on_loop.h"
#include "core/status.h"
#include "core/status_latch.h"
#include "transport/messenger.h"
#include "transport/tcp/live_loop.h"
#include "transport/tcp/tcp_port.h"

namespace ranklab::cli {
namespace {

using collectives::Collective;
using collectives::Communicator;

constexpr std::uint32_t kGeneration = 1;
constexpr Nanos kConnectTimeout = std::chrono::seconds(20);
constexpr Nanos kParentTimeout = std::chrono::hours(24 * 365);  // it ends with its parent
constexpr Nanos kSlack = std::chrono::seconds(10);

struct NoTrace final : TraceSink {
  void Record(const Span&) override {}
  void Record(const CollectiveSpan&) override {}
  void Record(const CounterSample&) override {}
};

// Calls in a row, each begun on the loop when the one before has ended; all ranks begin together.
// Shared with the call under way.
class Repetition : public std::enable_shared_from_this<Repetition> {
 public:
  using CallFn = absl::AnyInvocable<void(DoneFn)>;

  Repetition(EventLoop& loop, int times, CallFn call)
      : loop_(loop), left_(times), call_(std::move(call)) {}

  // On the loop. `barrier` runs its callback once all ranks have called theirs.
  void Begin(Communicator& communicator) {
    communicator.Barrier({}, [self = shared_from_this()](const absl::Status& status) {
      self->begin_ = self->loop_.Now();
      self->Next(status);
    });
  }

  // From another thread. The time from the first call's begin to the last one's end.
  absl::StatusOr<Nanos> Wait(Nanos timeout) const {
    RETURN_IF_ERROR(ended_.Wait(timeout, "the collectives of this rank"));
    return end_ - begin_;
  }

 private:
  void Next(const absl::Status& status) {
    if (!status.ok() || left_ == 0) {
      end_ = loop_.Now();
      ended_.Set(status);
      return;
    }
    --left_;
    call_([self = shared_from_this()](const absl::Status& ended) { self->Next(ended); });
  }

  EventLoop& loop_;
  int left_;
  CallFn call_;
  Nanos begin_{};  // these two are written before ended_ is set
  Nanos end_{};
  StatusLatch ended_;
};

class RankProcess {
 public:
  explicit RankProcess(const RankProcessOptions& options)
      : options_(options),
        timeout_(static_cast<std::int64_t>(options.timeout_seconds * 1e9)),
        loop_(std::chrono::microseconds(options.spin_microseconds)) {}

  ~RankProcess() {
    RunOnLoop(loop_, [this] {
      communicator_.reset();
      messenger_.reset();
      wire_.reset();
    });
  }

  // Until standard input ends, or with an error.
  absl::Status Run() {
    ASSIGN_OR_RETURN(port_, transport::TcpPort::Listen(
                                loop_, "127.0.0.1:0",
                                {.body_checksums = options_.checksums
                                                       ? transport::BodyChecksums::kAlways
                                                       : transport::BodyChecksums::kBetweenHosts}));
    Say(std::to_string(port_->port()));
    ASSIGN_OR_RETURN(const std::string ports, Hear());
    RETURN_IF_ERROR(Connect(ports));
    Say("ready");
    for (absl::StatusOr<std::string> line = Hear(); line.ok(); line = Hear()) {
      ASSIGN_OR_RETURN(const Trial trial, ReadTrial(*line));
      ASSIGN_OR_RETURN(const Measurement measurement, Measure(trial));
      Say(MeasurementLine(measurement));
    }
    return absl::OkStatus();
  }

 private:
  static void Say(const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  }

  static absl::StatusOr<std::string> Hear() {
    return ReadLine(STDIN_FILENO, kParentTimeout, "the next line");
  }

  // `ports`: of all ranks, in order, separated by blanks.
  absl::Status Connect(const std::string& ports) {
    std::vector<transport::WirePeer> peers;
    std::istringstream words(ports);
    int port = 0;
    while (words >> port) {
      if (ranks_ != options_.rank) {
        peers.push_back({{Role::kWorker, ranks_}, "127.0.0.1:" + std::to_string(port)});
      }
      ++ranks_;
    }
    StatusLatch ready;
    RunOnLoop(loop_, [&] {
      wire_ = port_->Open({.self = {Role::kWorker, options_.rank},
                           .generation = kGeneration,
                           .peers = std::move(peers),
                           .deadline = loop_.Now() + kConnectTimeout,
                           .shared_memory = options_.shared_memory},
                          [&ready](absl::Status status) { ready.Set(std::move(status)); });
      messenger_ = std::make_unique<transport::Messenger>(
          loop_, *wire_, transport::MessengerOptions{.generation = kGeneration});
    });
    RETURN_IF_ERROR(ready.Wait(kConnectTimeout + kSlack, "the other ranks"));
    return options_.shared_memory ? CheckSharedMemory() : absl::OkStatus();
  }

  // What is measured must be what was asked for.
  absl::Status CheckSharedMemory() {
    absl::Status status;
    RunOnLoop(loop_, [&] {
      for (Rank rank = 0; rank < ranks_; ++rank) {
        if (rank != options_.rank && !wire_->counters({Role::kWorker, rank}).shared_memory) {
          status = Unavailable("rank %d shares no memory with rank %d: this system refuses it",
                               options_.rank, rank);
        }
      }
    });
    return status;
  }

  absl::StatusOr<Measurement> Measure(const Trial& trial) {
    TrialBuffers buffers(trial, ranks_, options_.rank, memory_);
    absl::Status made;
    RunOnLoop(loop_, [&] { made = MakeCommunicator(trial); });
    RETURN_IF_ERROR(made);
    buffers.Fill();
    RETURN_IF_ERROR(Repeat(trial, buffers, trial.warmup).status());
    ASSIGN_OR_RETURN(const Nanos taken, Repeat(trial, buffers, trial.iterations));
    Measurement measurement;
    measurement.seconds =
        std::chrono::duration<double>(taken).count() / static_cast<double>(trial.iterations);
    if (trial.check) {
      buffers.Fill();
      RETURN_IF_ERROR(Repeat(trial, buffers, 1).status());
      measurement.wrong = buffers.CountWrong();
    }
    return measurement;
  }

  // Groups are numbered, so that no call is taken for one of another trial.
  absl::Status MakeCommunicator(const Trial& trial) {
    collectives::ProcessGroup world{.id = ++groups_,
                                    .members = std::vector<Rank>(static_cast<std::size_t>(ranks_)),
                                    .my_rank = options_.rank,
                                    .generation = kGeneration};
    std::iota(world.members.begin(), world.members.end(), 0);
    ASSIGN_OR_RETURN(
        communicator_,
        Communicator::Make(
            {loop_, *messenger_, reducer_, trace_}, world,
            {.algorithm = trial.algorithm, .chunks_per_rank = trial.chunks, .timeout = timeout_}));
    return absl::OkStatus();
  }

  absl::StatusOr<Nanos> Repeat(const Trial& trial, TrialBuffers& buffers, int times) {
    const auto repetition = std::make_shared<Repetition>(
        loop_, times,
        [this, &trial, &buffers](DoneFn done) { Call(trial, buffers, std::move(done)); });
    loop_.Post([this, repetition] { repetition->Begin(*communicator_); });
    return repetition->Wait((times + 1) * timeout_ + kSlack);
  }

  void Call(const Trial& trial, TrialBuffers& buffers, DoneFn done) {
    buffers.CopyIn();
    const compute::TensorView whole = buffers.output();
    switch (trial.collective) {
      case Collective::kAllGather:
        return communicator_->AllGather(whole, {}, std::move(done));
      case Collective::kReduceScatter:
        return communicator_->ReduceScatter(whole, trial.op, {}, std::move(done));
      case Collective::kBroadcast:
        return communicator_->Broadcast(whole, trial.root, {}, std::move(done));
      case Collective::kReduce:
        return communicator_->Reduce(whole, trial.op, trial.root, {}, std::move(done));
      case Collective::kAllToAll:
        return communicator_->AllToAll(buffers.input(), whole, {}, std::move(done));
      default:
        return communicator_->AllReduce(whole, trial.op, {}, std::move(done));
    }
  }

  const RankProcessOptions options_;
  const Nanos timeout_;
  Rank ranks_ = 0;
  std::uint32_t groups_ = 0;
  TrialMemory memory_;
  collectives::CpuReducer reducer_;
  NoTrace trace_;
  transport::LiveLoop loop_;
  std::unique_ptr<transport::TcpPort> port_;
  std::unique_ptr<transport::Wire> wire_;
  std::unique_ptr<transport::Messenger> messenger_;
  std::unique_ptr<Communicator> communicator_;
};

}  // namespace

int RunRankProcess(const RankProcessOptions& options) {
  const absl::Status ended = RankProcess(options).Run();
  if (!ended.ok()) {
    std::printf("!%s\n", MessageOf(ended).c_str());
    std::fflush(stdout);
  }
  return ExitCodeOf(ended);
}

}  // namespace ranklab::cli
