// What a lab's parameter servers can survive.
#pragma once

#include "experiment/lab_spec.h"

namespace ranklab::experiment {

// Every update of a shard is on the next server too before it shows: with cluster.on_loss continue
// and at least two servers.
bool Replicates(const LabSpec& spec);

}  // namespace ranklab::experiment
