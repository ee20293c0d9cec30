#include <gtest/gtest.h>

#include "sim/validation/check.h"
#include "sim/validation/published_table.h"

namespace ranklab::sim {
namespace {

TEST(Validation, EveryCheckStaysWithinItsLimits) {
  for (const ValidationCheck& check : ValidationChecks()) {
    const absl::StatusOr<Comparison> comparison = check.compare();
    ASSERT_TRUE(comparison.ok()) << check.name << ": " << comparison.status();
    EXPECT_FALSE(comparison->rows.empty()) << check.name;
    EXPECT_LE(comparison->MeanError(), check.mean_limit) << check.name;
    EXPECT_LE(comparison->WorstError(), check.worst_limit) << check.name;
  }
}

TEST(Validation, RowsThatWereNotFittedAreAsGoodAsTheMeanLimit) {
  for (const ValidationCheck& check : ValidationChecks()) {
    EXPECT_LE(check.compare().value().MeanPredictedError(), check.mean_limit) << check.name;
  }
}

TEST(PublishedTable, RefusesARowOfAnotherWidth) {
  EXPECT_TRUE(Table::Read("a,b\n1,2\n").ok());
  EXPECT_EQ(Table::Read("a,b\n1\n").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Table::Read("a,b\r\n1,\r\n").value().Text(0, "b"), "");
}

}  // namespace
}  // namespace ranklab::sim
