// One pass of a batch through a model.
#pragma once

#include <gtest/gtest.h>

#include "worker/model.h"

namespace ranklab::worker {

inline compute::LossSum ForwardAndBackward(Model& model, const Batch& batch, float scale = 1.0F) {
  for (int layer = 0; layer < model.layer_count(); ++layer) {
    EXPECT_TRUE(model.ForwardLayer(layer, batch).ok());
  }
  const auto loss = model.Loss(batch, scale);
  EXPECT_TRUE(loss.ok()) << loss.status();
  for (int layer = model.layer_count() - 1; layer >= 0; --layer) {
    EXPECT_TRUE(model.BackwardLayer(layer, batch).ok());
  }
  return *loss;
}

}  // namespace ranklab::worker
