#include "experiment/model_flops.h"

#include <variant>

#include "core/overloaded.h"

namespace ranklab::experiment {

double ModelFlopsOfSample(const LabSpec& spec) {
  return std::visit(Overloaded{
                        [](const MlpSpec& mlp) {
                          double weights = 0;
                          for (std::size_t i = 1; i < mlp.layers.size(); ++i) {
                            weights += static_cast<double>(mlp.layers[i - 1]) * mlp.layers[i];
                          }
                          return 6 * weights;
                        },
                        [&spec](const GptSpec& gpt) {
                          const double hidden = gpt.hidden;
                          const double context = gpt.context;
                          // Of a block: 3 C C for queries, keys and values, C C behind them, 8 C C
                          // in the MLP.
                          const double weights =
                              12.0 * gpt.layers * hidden * hidden + hidden * spec.data.Vocabulary();
                          return context * (6 * weights + 12.0 * gpt.layers * hidden * context);
                        },
                    },
                    spec.model);
}

}  // namespace ranklab::experiment
