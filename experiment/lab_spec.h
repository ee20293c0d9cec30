// A lab file as values. Every process of a run reads the same text, so there is no second schema.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/units.h"
#include "experiment/scenario.h"

namespace ranklab::experiment {

// Native, or modelled. Scaled time keeps the ratio of compute to communication of the modelled
// cluster on a machine that is far slower: times are divided by the scale when they are reported.
struct FabricSpec {
  std::string preset = "native";  // a name of fabric/presets.h
  double time_scale = 0.0;        // 0 is "auto": the smallest that this machine carries
  double headroom = 1.0;          // that auto's choice is multiplied by: slower, and truer

  bool native() const { return preset == "native"; }
};

struct ComputeSpec {
  std::string model = "native";  // or a device model of fabric/device_model.h: "h100", "a100", ...
  int threads = 1;               // a worker, for matrix work; equal in every cell of a curve
  Nanos op_overhead = std::chrono::microseconds(5);  // fixed cost of an operation; assumed

  bool native() const { return model == "native"; }
};

// The baseline row `none`: one worker, nothing to exchange.
struct NoExchange {};
enum class ReductionOrder : std::uint8_t { kArrival, kRank };
struct ParameterServerSpec {
  static constexpr std::int64_t kUnbounded = INT64_MAX;
  std::int64_t staleness_bound = 0;  // 0 synchronous; kUnbounded is "none" in the file
  ReductionOrder order = ReductionOrder::kArrival;
};
struct CollectiveSpec {
  std::string algorithm = "ring";  // an all-reduce of the schedule catalog, or "auto"

  // What auto stands for: the ring.
  std::string_view resolved() const {
    return algorithm == "auto" ? std::string_view("ring") : std::string_view(algorithm);
  }
};
struct NcclSpec {};

struct ExchangeSpec {
  std::variant<NoExchange, ParameterServerSpec, CollectiveSpec, NcclSpec> kind = CollectiveSpec{};
  std::string transport = "auto";  // "tcp", "grpc", "shm"; auto: grpc for ps, tcp for collectives
  Bytes bucket = 25 << 20;
  Bytes first_bucket = 1 << 20;
  std::string wire_dtype = "fp32";  // of gradients on their way
  bool overlap = true;
  bool barrier = false;  // all workers meet, untimed, before each step's exchange; without overlap
  Nanos timeout{};  // of one exchange, wall; 0: the larger of 30 s and 20 times the predicted time
};

struct MlpSpec {
  std::vector<int> layers{};  // widths, inputs first
};
struct GptSpec {
  int layers = 0;
  int hidden = 0;
  int heads = 0;
  int context = 0;
  bool tied = true;  // the head is the token table
};

struct DataSpec {
  std::string kind = "digits";  // "digits", "idx", "synthetic"; of tokens: "grammar", "text"
  std::string images, labels;   // idx: training files, relative to the lab file
  std::string test_images, test_labels;
  std::int64_t samples = 4096;  // synthetic, grammar: of training; the test set is a quarter of it
  int inputs = 64, classes = 10;  // synthetic
  int vocabulary = 16;            // grammar: tokens
  int branching = 4;              // grammar: tokens that can follow a pair
  int shortest = 0;               // grammar: tokens of the shortest sample; 0: all have `context`
  std::string file{};             // text: relative to the lab file
  int context = 0;                // tokens of a sample: the model's, set by the reader
  int loaders = 1;                // threads that gather batches
  int prefetch = 2;               // batches gathered ahead, at most
  std::uint64_t split_seed = 1;   // names the split; does not change with the training seed

  bool of_tokens() const { return kind == "grammar" || kind == "text"; }
  int Vocabulary() const { return kind == "text" ? 256 : vocabulary; }  // bytes are tokens
  std::string Key() const;                                              // equal for equal data
};

struct TrainSpec {
  Step steps = 0;                 // global batches, also in asynchronous runs
  int warmup_steps = 2;           // not counted in times
  int global_batch = 0;           // strong scaling, or
  int batch_per_worker = 0;       // weak scaling; one of the two is set
  int accumulate = 1;             // micro-batches a step
  bool recompute = false;         // activations of a block in its backward pass; gpt
  std::string optimizer = "sgd";  // "sgd", "momentum", "adamw"
  double momentum = 0.9;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0.01;  // adamw
  double clip_norm = 0;               // of the gradients, before the update; 0: none
  double learning_rate = 0.1;         // asynchronous runs divide it by the number of workers
  std::string scale_rate = "none";    // with the batch: "linear", "sqrt"
  int base_batch = 256;               // global batch that learning_rate is for, where it is scaled
  std::string schedule = "constant";  // "cosine"
  int ramp_steps = 0;                 // over which the rate rises at first
  double final_rate = 0;              // cosine: the share of the rate that is left at the end
  std::string precision = "fp32";     // of weights, activations and their gradients
  bool trace = true;                  // record spans and counters of every step
};

// Workers with cluster.shared_gpu: beyond, NCCL's kernels wait for one another's time slices.
inline constexpr int kMostOnOneGpu = 4;

struct ClusterSpec {
  int workers = 1;               // 0: all in the pool
  int servers = 1;               // only used by ps
  std::string device = "auto";   // "auto", "cpu", "cuda"
  bool shared_gpu = false;       // workers may be on one GPU with nccl; times mean nothing then
  std::string on_loss = "stop";  // "stop"; "continue" is refused by name until it is built
  Nanos suspect_after = std::chrono::seconds(5);
  Bytes memory_cap = 0;  // of each worker, all kinds together; 0: none
};

// A claim the lab makes, such as "accuracy > 0.95"; a run that breaks it fails.
struct Expectation {
  std::string text{};
  int line = 0;
};

// One cell of a lab: nothing left to choose.
struct LabSpec {
  std::uint64_t seed = 1;
  std::variant<MlpSpec, GptSpec> model{};
  DataSpec data{};
  TrainSpec train{};
  ClusterSpec cluster{};
  ComputeSpec compute{};
  FabricSpec fabric{};
  ExchangeSpec exchange{};
  Scenario scenario{};

  // Samples of one step on all workers together, and on rank `rank` (they differ by at most one).
  int GlobalBatch() const;
  int BatchOf(Rank rank) const;
  bool asynchronous() const;  // a parameter server with a bound above 0 or none
  // "none", "ps", "ps staleness 2", "ps async", "ring", ...
  std::string ExchangeName() const;
  std::string Transport() const;  // "tcp", "grpc" or "shm", auto resolved
};

struct Cell {
  int part = 0;             // index into Lab::parts
  int index = 0;            // within the part
  bool baseline = false;    // added by the expansion: the row `none` that efficiency divides by
  int baseline_index = -1;  // in the part's cells: whom its efficiency divides by; -1: nobody
  LabSpec spec{};
  std::vector<std::pair<std::string, std::string>> settings{};  // swept path -> value, as written
};

struct Part {
  std::string name{};
  int repeats = 1;
  bool simulated = false;     // `simulate: true`: played in virtual time, by `ranklab run` too
  std::vector<Cell> cells{};  // baselines last
  std::vector<Expectation> expect{};
};

struct Lab {
  std::string name{};
  std::string file{};         // as given, for messages
  std::string question{};     // what a reader can answer afterwards
  double budget_seconds = 0;  // 0: none stated
  std::string text{};         // as read
  std::string hash{};         // of text and overrides, XXH3 128 in hex
  std::vector<std::string> overrides{};
  std::vector<Part> parts{};
};

}  // namespace ranklab::experiment
