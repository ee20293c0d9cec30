#include "collectives/schedule/verify.h"

#include "collectives/schedule/promise.h"
#include "collectives/schedule/proof.h"
#include "core/status.h"

namespace ranklab::collectives {

absl::Status Verify(const Schedule& schedule) {
  RETURN_IF_ERROR(CheckShape(schedule));
  const OpLists lists(schedule);
  RETURN_IF_ERROR(CheckOps(schedule, lists));
  ASSIGN_OR_RETURN(const Pairing pairing, PairMessages(lists));
  RETURN_IF_ERROR(CheckOverlaps(schedule, lists));
  RETURN_IF_ERROR(RunOnSymbols(schedule, lists, pairing));
  return CheckSizes(schedule, lists, pairing);
}

}  // namespace ranklab::collectives
