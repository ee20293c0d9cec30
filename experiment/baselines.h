// The rows `none`: one worker with nothing to exchange, which efficiency divides by.
#pragma once

#include "experiment/lab_spec.h"

namespace ranklab::experiment {

// Points every cell that exchanges at a cell that trains the same batch a worker with the same
// model, data, compute and time scale alone: one that the lab has, or one that is added at the end.
// Cells that differ only in seed, learning rate or network share one.
void AddBaselines(int part_index, Part& part);

}  // namespace ranklab::experiment
