#include "worker/grammar.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <span>
#include <vector>

#include "compute/operations.h"
#include "core/random.h"
#include "core/status.h"
#include "worker/streams.h"

namespace ranklab::worker {
namespace {

constexpr std::int64_t kMaxTokens = std::int64_t{1} << 28;
constexpr int kMaxVocabulary = 256;

class Grammar {
 public:
  Grammar(int vocabulary, int branching, Random random)
      : vocabulary_(vocabulary), branching_(branching) {
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(vocabulary));
    std::iota(tokens.begin(), tokens.end(), 0);
    for (int pair = 0; pair < vocabulary * vocabulary; ++pair) {
      random.Shuffle(std::span(tokens));
      successors_.insert(successors_.end(), tokens.begin(), tokens.begin() + branching);
    }
  }

  // One sample of `length` tokens, padded to `context`, behind those of `split`.
  void AppendSample(std::int64_t length, std::int64_t context, Random& random, Split& split) const {
    std::vector<std::int32_t> tokens;
    for (std::int64_t i = 0; i <= length; ++i) {  // one more: the last target
      tokens.push_back(i < 2 ? static_cast<std::int32_t>(random.Below(vocabulary_))
                             : Next(tokens[i - 2], tokens[i - 1], random));
    }
    for (std::int64_t i = 0; i < context; ++i) {
      const bool target = 0 < i && i < length;
      split.tokens.push_back(i < length ? tokens[i] : 0);
      split.labels.push_back(target ? tokens[i + 1] : compute::kNoTarget);
    }
  }

 private:
  // Each successor is taken with probability 1/2, the last one if no other was.
  std::int32_t Next(std::int32_t before, std::int32_t last, Random& random) const {
    int choice = 0;
    while (choice + 1 < branching_ && random.Below(2) == 0) {
      ++choice;
    }
    return successors_[static_cast<std::size_t>((before * vocabulary_ + last) * branching_ +
                                                choice)];
  }

  int vocabulary_;
  int branching_;
  std::vector<std::int32_t> successors_;  // (vocabulary, vocabulary, branching)
};

Split Draw(std::int64_t samples, const experiment::DataSpec& spec, const Grammar& grammar,
           Random& random) {
  Split split;
  split.labels_per_sample = spec.context;
  const int shortest = spec.shortest == 0 ? spec.context : spec.shortest;
  for (std::int64_t i = 0; i < samples; ++i) {
    const auto more = static_cast<std::int64_t>(random.Below(spec.context - shortest + 1));
    grammar.AppendSample(shortest + more, spec.context, random, split);
  }
  return split;
}

}  // namespace

double EntropyOf(int branching) { return (2.0 - std::exp2(2.0 - branching)) * std::numbers::ln2; }

absl::StatusOr<Dataset> MakeGrammar(const experiment::DataSpec& spec) {
  if (spec.context < 2 || spec.samples < 1 || spec.samples > kMaxTokens / spec.context) {
    return InvalidArgument(
        "a grammar's %d samples of %d tokens; at least 1 of 2, at most %d tokens", spec.samples,
        spec.context, kMaxTokens);
  }
  if (spec.vocabulary < 2 || spec.vocabulary > kMaxVocabulary || spec.branching < 2 ||
      spec.branching > spec.vocabulary) {
    return InvalidArgument("a grammar of %d tokens with %d successors; 2 to %d, with 2 to all",
                           spec.vocabulary, spec.branching, kMaxVocabulary);
  }
  if (spec.shortest != 0 && (spec.shortest < 2 || spec.shortest > spec.context)) {
    return InvalidArgument("a grammar's shortest sample of %d tokens; 2 to %d", spec.shortest,
                           spec.context);
  }
  const Grammar grammar(spec.vocabulary, spec.branching,
                        StreamOf(spec.split_seed, Stream::kTeacher));
  Random random = StreamOf(spec.split_seed, Stream::kInputs);
  Dataset data{.inputs = spec.context, .classes = spec.vocabulary, .train = {}, .test = {}};
  data.train = Draw(spec.samples, spec, grammar, random);
  data.test = Draw(std::max<std::int64_t>(1, spec.samples / 4), spec, grammar, random);
  data.loss_floor = EntropyOf(spec.branching);
  return data;
}

}  // namespace ranklab::worker
