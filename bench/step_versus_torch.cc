// Our half of bench/step_versus_torch.py: on each line "N" of standard input, N training steps of
// one model on one CPU thread, answered by a line with the seconds of each.
//
//     step_versus_torch gpt|mlp
#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>

#include <absl/strings/str_format.h>

#include "compute/device.h"
#include "compute/optimizer.h"
#include "core/random.h"
#include "core/status.h"
#include "worker/batch.h"
#include "worker/model.h"

namespace ranklab {
namespace {

struct Case {
  experiment::LabSpec spec;
  int samples = 0, inputs = 0, classes = 0;
};

Case CaseOf(std::string_view name) {
  Case result;
  if (name == "gpt") {
    result.spec.model =
        experiment::GptSpec{.layers = 4, .hidden = 256, .heads = 4, .context = 128, .tied = true};
    result.samples = 8;
    result.inputs = 128;
    result.classes = 256;
  } else {
    result.spec.model = experiment::MlpSpec{.layers = {784, 1024, 1024, 10}};
    result.samples = 64;
    result.inputs = 784;
    result.classes = 10;
  }
  return result;
}

worker::Split Draw(const Case& what, bool tokens) {
  Random random(1);
  worker::Split split;
  split.labels_per_sample = tokens ? what.inputs : 1;
  for (int i = 0; i < what.samples * what.inputs; ++i) {
    if (tokens) {
      split.tokens.push_back(static_cast<std::int32_t>(random.Below(what.classes)));
    } else {
      split.inputs.push_back(static_cast<float>(random.Normal()));
    }
  }
  for (int i = 0; i < what.samples * split.labels_per_sample; ++i) {
    split.labels.push_back(static_cast<std::int32_t>(random.Below(what.classes)));
  }
  return split;
}

absl::Status Step(worker::Model& model, compute::Optimizer& optimizer, worker::Split& split) {
  const worker::Batch batch = worker::BatchOf(split, 0, split.samples());
  RETURN_IF_ERROR(model.ZeroGradients());
  for (int layer = 0; layer < model.layer_count(); ++layer) {
    RETURN_IF_ERROR(model.ForwardLayer(layer, batch));
  }
  ASSIGN_OR_RETURN(const compute::LossSum loss, model.Loss(batch, /*scale=*/1.0F));
  for (int layer = model.layer_count() - 1; layer >= 0; --layer) {
    RETURN_IF_ERROR(model.BackwardLayer(layer, batch));
  }
  return optimizer.Apply(model.parameters(), model.gradients(),
                         1.0 / static_cast<double>(loss.targets));
}

absl::Status Serve(std::string_view name) {
  const Case what = CaseOf(name);
  compute::CpuDevice device({.threads = 1});
  ASSIGN_OR_RETURN(auto model,
                   worker::MakeModel(what.spec, device, what.samples, what.inputs, what.classes));
  RETURN_IF_ERROR(model->Initialize(1));
  ASSIGN_OR_RETURN(
      auto optimizer,
      compute::MakeOptimizer({.name = "momentum", .learning_rate = {.peak = 0.01}, .momentum = 0.9},
                             device));
  worker::Split split = Draw(what, name == "gpt");
  for (int steps = 0; std::cin >> steps;) {
    for (int step = 0; step < steps; ++step) {
      const auto begins = std::chrono::steady_clock::now();
      RETURN_IF_ERROR(Step(*model, *optimizer, split));
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begins;
      std::cout << absl::StrFormat("%.6f ", took.count());
    }
    std::cout << std::endl;
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace ranklab

int main(int argc, char** argv) {
  const std::string_view name = argc == 2 ? argv[1] : "";
  if (name != "gpt" && name != "mlp") {
    std::fputs("step_versus_torch gpt|mlp\n", stderr);
    return 2;
  }
  const absl::Status served = ranklab::Serve(name);
  if (!served.ok()) {
    std::fputs((ranklab::MessageOf(served) + "\n").c_str(), stderr);
    return 1;
  }
  return 0;
}
