#include "ps/placement.h"

#include <algorithm>

#include "core/check.h"

namespace ranklab::ps {

std::vector<KeyRange> CutEvenly(std::int64_t elements, int servers) {
  RANKLAB_CHECK(servers >= 1, "%d servers", servers);
  RANKLAB_CHECK(elements >= 0, "%d elements", elements);
  const std::int64_t least = elements / servers;
  const std::int64_t larger = elements % servers;
  std::vector<KeyRange> ranges;
  std::int64_t begin = 0;
  for (int server = 0; server < servers; ++server) {
    const std::int64_t end = begin + least + (server < larger ? 1 : 0);
    ranges.push_back({begin, end});
    begin = end;
  }
  RANKLAB_CHECK(begin == elements);
  return ranges;
}

std::vector<std::pair<Rank, KeyRange>> Intersect(const std::vector<KeyRange>& ranges,
                                                 KeyRange part) {
  std::vector<std::pair<Rank, KeyRange>> pieces;
  for (std::size_t server = 0; server < ranges.size(); ++server) {
    const KeyRange piece{std::max(part.begin, ranges[server].begin),
                         std::min(part.end, ranges[server].end)};
    if (piece.begin < piece.end) {
      pieces.emplace_back(static_cast<Rank>(server), piece);
    }
  }
  return pieces;
}

}  // namespace ranklab::ps
