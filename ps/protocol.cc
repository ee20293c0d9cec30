#include "ps/protocol.h"

#include <bit>
#include <cstring>

#include "core/status.h"

namespace ranklab::ps {

static_assert(std::endian::native == std::endian::little, "words go over the wire as they are");

std::vector<std::int64_t> EncodeUpdate(const ReplicatedUpdate& update) {
  std::vector<std::int64_t> words{update.step};
  words.insert(words.end(), update.finished.begin(), update.finished.end());
  return words;
}

absl::StatusOr<ReplicatedUpdate> DecodeUpdate(const transport::RequestHeader& header,
                                              transport::Payload body, int worker_count) {
  constexpr Bytes kWord = sizeof(std::int64_t);
  const Bytes count = body.size / kWord;
  if (body.size % kWord != 0 || count < 1 || count > 1 + worker_count) {
    return InvalidArgument("an update in %d bytes, of %d workers", body.size, worker_count);
  }
  std::vector<std::int64_t> words(static_cast<std::size_t>(count));
  std::memcpy(words.data(), body.data, static_cast<std::size_t>(body.size));
  ReplicatedUpdate update{.sequence = header.step,
                          .step = words.front(),
                          .end = {.weight = header.weight, .overflow = header.overflow}};
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] < 0 || words[i] >= worker_count) {
      return InvalidArgument("an update of worker %d; there are %d", words[i], worker_count);
    }
    update.finished.push_back(static_cast<Rank>(words[i]));
  }
  return update;
}

}  // namespace ranklab::ps
