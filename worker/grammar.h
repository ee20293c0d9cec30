// Tokens from a source whose entropy rate is known, so that the floor of the loss is.
#pragma once

#include <absl/status/statusor.h>

#include "worker/dataset.h"

namespace ranklab::worker {

// A Markov source of order 2 over spec.vocabulary tokens: each pair of tokens has spec.branching
// possible successors, drawn by spec.split_seed, with the probabilities 1/2, 1/4, ..., the last one
// as likely as the one before it. So the entropy of the next token is EntropyOf(branching) whatever
// the pair, and a model reaches it only by looking at two tokens and learning vocabulary^2 rows.
//
// A sample begins with two uniform tokens; its first position has no target, because what follows
// one token alone is another distribution. Samples have spec.shortest to spec.context tokens,
// uniformly, and are padded with token 0 and no target. spec.samples are for training, a quarter as
// many for the test. loss_floor is the entropy, exactly, for an infinite test split.
// Errors: InvalidArgument, sizes out of range; also one successor, whose floor of 0 would be none.
absl::StatusOr<Dataset> MakeGrammar(const experiment::DataSpec& spec);

// (2 - 2^(2 - branching)) log 2 nats. Source: Shannon, "A mathematical theory of communication",
// 1948, the entropy of a Markov source.
double EntropyOf(int branching);

}  // namespace ranklab::worker
