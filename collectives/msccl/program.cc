#include "collectives/msccl/program.h"

#include <absl/strings/str_format.h>

namespace ranklab::collectives {

std::string_view NameOf(MscclStepType type) {
  switch (type) {
    case MscclStepType::kSend:
      return "s";
    case MscclStepType::kRecv:
      return "r";
    case MscclStepType::kCopy:
      return "cpy";
    case MscclStepType::kReduce:
      return "re";
    case MscclStepType::kRecvCopySend:
      return "rcs";
    case MscclStepType::kRecvReduceSend:
      return "rrs";
    case MscclStepType::kRecvReduceCopy:
      return "rrc";
    case MscclStepType::kRecvReduceCopySend:
      return "rrcs";
    case MscclStepType::kNop:
      return "nop";
  }
  return "unknown step";
}

bool Receives(MscclStepType type) {
  return type == MscclStepType::kRecv || type == MscclStepType::kRecvCopySend ||
         type == MscclStepType::kRecvReduceSend || type == MscclStepType::kRecvReduceCopy ||
         type == MscclStepType::kRecvReduceCopySend;
}

bool Sends(MscclStepType type) {
  return type == MscclStepType::kSend || type == MscclStepType::kRecvCopySend ||
         type == MscclStepType::kRecvReduceSend || type == MscclStepType::kRecvReduceCopySend;
}

bool Reduces(MscclStepType type) {
  return type == MscclStepType::kReduce || type == MscclStepType::kRecvReduceSend ||
         type == MscclStepType::kRecvReduceCopy || type == MscclStepType::kRecvReduceCopySend;
}

std::string NameOf(const MscclPlace& place) {
  return absl::StrFormat("gpu %d, threadblock %d, step %d", place.gpu, place.threadblock,
                         place.step);
}

absl::Status WrongAt(const MscclPlace& place, const std::string& what) {
  return InvalidArgument("%s: %s", NameOf(place), what);
}

}  // namespace ranklab::collectives
