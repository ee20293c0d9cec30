#include "experiment/run_record.h"

#include <algorithm>

#include "core/check.h"

namespace ranklab::experiment {

std::string_view NameOf(FigureKind kind) {
  switch (kind) {
    case FigureKind::kMeasured:
      return "measured";
    case FigureKind::kShaped:
      return "shaped";
    case FigureKind::kModelled:
      return "modelled";
    case FigureKind::kAssumed:
      return "assumed";
  }
  RANKLAB_CHECK(false, "figure kind %d", static_cast<int>(kind));
  return "";
}

Spread SpreadOf(std::vector<double> values) {
  RANKLAB_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {.median = median, .least = values.front(), .most = values.back()};
}

}  // namespace ranklab::experiment
