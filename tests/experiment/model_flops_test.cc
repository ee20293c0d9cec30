#include "experiment/model_flops.h"

#include <gtest/gtest.h>

namespace ranklab::experiment {
namespace {

TEST(ModelFlops, OfAnMlpAreSixAWeight) {
  LabSpec spec;
  spec.model = MlpSpec{.layers = {784, 1024, 10}};
  EXPECT_EQ(ModelFlopsOfSample(spec), 6.0 * (784 * 1024 + 1024 * 10));
}

// GPT-2 small, by hand: 84,934,656 weights in the blocks and 38,597,376 in the head, so 741,192,192
// FLOPs a token; attention adds 113,246,208.
TEST(ModelFlops, OfAGptCountTheScoresToo) {
  LabSpec spec;
  spec.model = GptSpec{.layers = 12, .hidden = 768, .heads = 12, .context = 1024};
  spec.data.kind = "grammar";
  spec.data.vocabulary = 50257;
  EXPECT_EQ(ModelFlopsOfSample(spec), 1024.0 * (741'192'192 + 113'246'208));
}

}  // namespace
}  // namespace ranklab::experiment
