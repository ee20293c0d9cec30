// The sections of a lab file, one function each: a tree in which nothing is left to choose becomes
// a LabSpec.
#pragma once

#include <string_view>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "experiment/config_node.h"
#include "experiment/lab_spec.h"

namespace ranklab::experiment {

// The keys that describe a cell: model, data, train, cluster, compute, exchange, fabric, scenario,
// seed. `root` may hold others, which are not read here.
// Errors: InvalidArgument, the first mistake by section, with its place.
absl::StatusOr<LabSpec> ReadSpec(const ConfigSource& source, const ConfigNode& root);

// What each section alone cannot see: a parameter server without servers, more workers than samples
// in a batch, a layer that does not fit the data, a scenario that hits nobody.
absl::Status CheckSpec(const ConfigSource& source, const ConfigNode& root, const LabSpec& spec);

// The algorithms that a lab may name: auto, and every all-reduce of the catalog.
std::vector<std::string_view> CollectiveAlgorithms();

}  // namespace ranklab::experiment
