// What ranks tell each other before NCCL knows any of them: its unique id and whose GPU is whose.
#pragma once

#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "collectives/nccl/api.h"
#include "core/units.h"

namespace ranklab::collectives::nccl {

// What `rank` brings: the id, which rank 0 alone makes, and the name of its GPU, at most 1 KiB.
// Printable, without blanks, as `device` is.
// Errors: Internal, NCCL cannot make an id.
absl::StatusOr<std::string> MakeToken(Api& api, Rank rank, const std::string& device);

// Rank 0's id from what all ranks brought, [rank].
// Errors: InvalidArgument, two of them on one GPU, by name, unless it is shared; Internal, not as
// many as ranks, or one that is no token.
absl::StatusOr<UniqueId> ReadTokens(const std::vector<std::string>& tokens, int ranks,
                                    bool shared_gpu);

}  // namespace ranklab::collectives::nccl
