// What a run leaves, as values: the summary of every cell with its repeats. Written and read as
// summary.json; tables, curves and verdicts are made from this and steps.csv, never from memory of
// the run.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/status/statusor.h>

#include "core/units.h"

namespace ranklab::experiment {

// What a figure is; printed with it.
enum class FigureKind : std::uint8_t { kMeasured, kShaped, kModelled, kAssumed };
std::string_view NameOf(FigureKind kind);

// One step of one worker, as it reported it. Wall time, undivided by time_scale.
struct StepRecord {
  Step step = 0;
  std::int64_t epoch = 0, samples = 0;
  double loss_sum = 0, weight = 0;
  double loss_scale = 1;
  bool skipped = false;  // some rank's gradients overflowed
  Nanos begins{}, step_time{}, input{}, forward{}, backward{}, exposed{}, optimizer{}, lateness{};
  std::optional<Nanos> hidden{};  // communication beside compute; none where nothing was traced
  std::int64_t staleness = 0;
  Bytes bytes_sent = 0, bytes_received = 0;
};

// Bytes that crossed one connection: message bodies, and everything with framing.
struct ConnectionRecord {
  std::string peer{};  // "worker 2"
  Bytes body_sent = 0, body_received = 0, wire_sent = 0, wire_received = 0;
  std::int64_t messages_sent = 0, messages_received = 0;
};

// One endpoint's network: what it is named after, and what it was. Wall time, dilated.
struct NetworkRecord {
  std::string endpoint{};  // "worker 0"
  std::vector<ConnectionRecord> connections{};
  bool judged = false;                  // a shaped network that the lab left alone
  bool held = false;                    // bandwidth, latency and bytes are what they claim to be
  std::vector<std::string> findings{};  // what did not hold
  double asked_bandwidth = 0, bandwidth_median = 0, bandwidth_p90 = 0;  // bytes per second
  double asked_latency = 0, latency_median = 0, latency_p90 = 0;        // seconds
  Bytes body_received = 0, body_claimed = 0;
  // Of its process: the coordinator's clock = its own + offset, +- residual; 0, 0: one clock. Over
  // repeats the last offset and the largest residual.
  double clock_offset = 0, clock_residual = 0;  // seconds
};

// Memory of one kind on one worker, in bytes.
struct MemoryRecord {
  Rank rank = 0;
  std::string kind{};  // "weights"
  Bytes now = 0;       // at the end of the run
  Bytes peak = 0;
  std::optional<Bytes> predicted{};  // the peak's closed form, for kinds that have one
};

// The arithmetic that a step asks for, and what it is held against (worker/utilization.h has the
// formulas). FLOPs are those of a sample's forward and backward pass.
struct WorkRecord {
  std::int64_t parameters = 0;  // N
  double model_flops = 0;       // that the model needs
  double hardware_flops = 0;    // that are done: more than the model's where some are done again
  std::int64_t tokens = 0;      // of a sample; 0: a sample is no sequence
  std::string formula{};        // in words, with its N
  double peak_flops = 0;        // a second, of the modelled device; 0: every rank's own, measured
  std::string peak{};           // which peak that is
};

struct WorkerRecord {
  std::string param_hash{};
  double final_loss = 0, test_loss = 0, loss_floor = 0, accuracy = 0, passes = 0;
  std::int64_t samples = 0, steps = 0;
  std::int64_t messages = 0, could_not_keep_up = 0;
  std::vector<std::int64_t> lateness_log2_us{};
  double matrix_flops = 0;  // a second, measured on this rank; 0: its compute is modelled
  NetworkRecord network{};
  std::vector<MemoryRecord> memory{};
};

struct ServerRecord {
  Bytes bytes_pushed = 0, bytes_pulled = 0;
  Nanos busy{};
  std::int64_t parked_pulls = 0, updates = 0;
  std::vector<std::map<std::int64_t, std::int64_t>> staleness{};  // [worker]
  NetworkRecord network{};
};

// One repeat of one cell.
struct CellRun {
  int part = 0, cell = 0, repeat = 1;
  double time_scale = 1;
  double predicted_seconds = 0;                  // modelled units; 0 for native runs
  double predicted_exposed_seconds = 0;          // of the exchange alone; 0 where there is no form
  std::vector<std::vector<StepRecord>> steps{};  // [rank]
  std::vector<WorkerRecord> workers{};           // [rank]
  std::vector<ServerRecord> servers{};           // [rank]
  Nanos start_up{};                              // wall time, see CellSummary
  int cores = 0;                                 // of the machine, to find oversubscription
  bool simulated = false;                        // in virtual time: nothing was trained
  std::string not_simulated{};                   // why a simulation has no steps of it
  // Each of `steps` and `workers` stands for so many ranks that do the same: above 1 where a closed
  // form took the place of playing every message.
  int ranks_alike = 1;
  double latency_share = 0;  // of the exchange's closed form that its messages' alpha makes
  WorkRecord work{};
};

// Of one quantity over the repeats of a cell. All times in modelled units (divided by time_scale).
struct Spread {
  double median = 0;
  double least = 0;
  double most = 0;
};
Spread SpreadOf(std::vector<double> values);  // requires: not empty

// Of one rank, over the repeats: mean seconds of a counted step (the breakdown's bar), and how much
// it got done. NaN: not known.
struct RankBreakdown {
  Rank rank = 0;
  double input = 0, forward = 0, backward = 0, exposed = 0, optimizer = 0, other = 0;
  double hidden = 0;  // communication beside compute: not a part of the bar
  double samples_per_second = 0;
  double peak_flops = 0;    // a second
  double mfu = 0, hfu = 0;  // model and hardware FLOPs a second over the peak; never above 1

  double compute() const { return forward + backward + optimizer; }
  double step() const { return input + compute() + exposed + other; }
};

// What a reader must know before trusting a row's figures (experiment/findings.h).
struct Finding {
  std::string code{};    // "NETWORK_NOT_HELD"
  std::string cause{};   // tells findings of one code apart; may be empty
  std::string text{};    // of this cell, with its figures
  std::string remedy{};  // may be empty
  double severity = 0;   // the larger the worse, within a code
};

struct CellSummary {
  std::string part{};
  int cell = 0;                                                 // within the part
  bool baseline = false;                                        // the row `none`
  std::vector<std::pair<std::string, std::string>> settings{};  // what the sweep chose
  std::string exchange{};  // "ring", "ps", "ps staleness 2", "ps async", "none"
  std::string transport{};
  std::string fabric{};  // preset
  int workers = 0, servers = 0, threads = 1;
  std::uint64_t seed = 0;
  std::string precision = "fp32";   // of the computation
  std::string wire_dtype = "fp32";  // of gradients on their way
  double time_scale = 1;
  FigureKind kind = FigureKind::kMeasured;
  int repeats = 0;
  std::int64_t counted_steps = 0;  // a repeat, after warm-up

  Spread samples_per_second{};
  Spread step_seconds{};
  Spread exposed_seconds{};
  // Wall seconds from a free cluster (the last join, or the end of the run before) until the
  // slowest worker began its first step.
  Spread start_up_seconds{};
  double efficiency = 0;                 // against the baseline; 0 when there is none
  double predicted_seconds = 0;          // the whole step; 0 for native runs
  double ratio = 0;                      // step / predicted
  double predicted_exposed_seconds = 0;  // the exchange alone; 0 where there is no closed form
  double exposed_ratio = 0;              // exposed / predicted
  std::int64_t skipped_steps = 0;        // for overflow, of rank 0 in the first repeat
  double latency_share = 0;              // of the exchange's closed form; 0 where there is none
  // Losses and accuracy are NaN (null in the file) where a loss ran away, and in modelled rows.
  double initial_loss = 0;  // of the first step's global batch
  double final_loss = 0;    // mean over the training split, mean over the repeats
  double test_loss = 0;     // test split, likewise
  double loss_floor = 0;    // the least that a model can have, nats a target; 0: unknown
  double accuracy = 0;      // test split
  std::vector<std::string> param_hashes{};  // [rank] of the last repeat
  bool hash_equal_across_ranks = false;
  bool hash_equal_across_repeats = false;
  WorkRecord work{};
  std::vector<RankBreakdown> breakdown{};
  std::vector<double> loss_curve{};                  // [global step - 1], first repeat
  std::vector<double> loss_seconds{};                // when each was reached, modelled seconds
  std::map<std::int64_t, std::int64_t> staleness{};  // observed -> reads
  std::int64_t messages = 0, could_not_keep_up = 0;
  std::vector<std::int64_t> lateness_log2_us{};
  Bytes bytes_sent_per_step = 0;  // body bytes, mean over ranks
  std::vector<std::int64_t> samples_per_rank{};
  std::vector<double> passes_per_rank{};
  std::vector<NetworkRecord> network{};  // workers, then servers (network_over_repeats.h)
  std::vector<MemoryRecord> memory{};    // by rank and kind, of the last repeat
  std::vector<Finding> findings{};
};

struct ExpectationOutcome {
  std::string part{};
  std::string text{};
  bool judged = true;  // false: it is about what a simulation does not have
  bool held = false;
  std::string found{};  // "accuracy 0.972 (ring, 4 workers), ..."

  bool failed() const { return judged && !held; }
};

struct RunSummary {
  std::string lab{};
  std::string question{};
  std::string lab_text{};
  std::string lab_hash{};
  std::string build{};
  std::map<std::string, std::string> environment{};  // cores, kernel, processor, versions, ...
  std::vector<CellSummary> cells{};
  std::vector<ExpectationOutcome> expectations{};
  std::vector<std::string> sentences{};  // what the report says in words
  std::string verdict{};
  int exit_code = 0;
  bool complete = false;
};

std::string ToJson(const RunSummary& summary);
absl::StatusOr<RunSummary> RunSummaryFromJson(std::string_view text);

}  // namespace ranklab::experiment
