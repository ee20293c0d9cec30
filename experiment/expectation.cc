#include "experiment/expectation.h"

#include <array>
#include <optional>
#include <utility>

#include "core/nearest.h"
#include "core/status.h"
#include "experiment/metrics.h"
#include "experiment/quantity.h"

namespace ranklab::experiment {
namespace {

constexpr std::string_view kForm =
    "such as \"accuracy > 0.95\", \"mean accuracy > 0.95 over seed\", \"samples_per_second > 1.5 "
    "times ps\", \"ratio < 1.15 where cluster.workers = 4\" or \"param_hash equal across ranks\"";

// Words and operators; an operator needs no blanks around it.
std::vector<std::string> Split(std::string_view text) {
  constexpr std::string_view kOperators = "<>=!";
  std::vector<std::string> tokens;
  bool fresh = true;
  for (const char letter : text) {
    if (letter == ' ' || letter == '\t' || letter == '\n') {
      fresh = true;
      continue;
    }
    const bool is_operator = kOperators.find(letter) != std::string_view::npos;
    if (!fresh &&
        is_operator != (kOperators.find(tokens.back().back()) != std::string_view::npos)) {
      fresh = true;
    }
    if (fresh) {
      tokens.emplace_back();
    }
    tokens.back() += letter;
    fresh = false;
  }
  return tokens;
}

class Parser {
 public:
  explicit Parser(std::vector<std::string> tokens) : tokens_(std::move(tokens)) {}

  absl::StatusOr<ParsedExpectation> Parse() {
    ParsedExpectation parsed;
    RETURN_IF_ERROR(Accept("param_hash") ? ParseHash(parsed) : ParseMetric(parsed));
    if (Accept("where")) {
      RETURN_IF_ERROR(ParseWhere(parsed));
    }
    if (at_ < tokens_.size()) {
      return InvalidArgument("\"%s\" is not understood; %s", tokens_[at_], kForm);
    }
    return parsed;
  }

 private:
  bool Accept(std::string_view word) {
    if (at_ < tokens_.size() && tokens_[at_] == word) {
      ++at_;
      return true;
    }
    return false;
  }

  std::string Next() { return at_ < tokens_.size() ? tokens_[at_++] : std::string(); }

  std::string WordsUntil(std::string_view end) {
    std::string words;
    while (at_ < tokens_.size() && tokens_[at_] != end) {
      words += (words.empty() ? "" : " ") + Next();
    }
    return words;
  }

  absl::Status ParseHash(ParsedExpectation& parsed) {
    if (!Accept("equal") || !Accept("across")) {
      return InvalidArgument("param_hash can be equal across ranks or equal across repeats");
    }
    if (Accept("ranks")) {
      parsed.claim = ParsedExpectation::Claim::kHashAcrossRanks;
    } else if (Accept("repeats")) {
      parsed.claim = ParsedExpectation::Claim::kHashAcrossRepeats;
    } else {
      return InvalidArgument("param_hash can be equal across ranks or equal across repeats");
    }
    return absl::OkStatus();
  }

  absl::Status ParseMetric(ParsedExpectation& parsed) {
    const bool mean = Accept("mean");
    parsed.metric = Next();
    if (FindMetric(parsed.metric) == nullptr) {
      std::vector<std::string_view> names = {"param_hash"};
      std::string list = "param_hash";
      for (const Metric& metric : Metrics()) {
        names.push_back(metric.name);
        list += ", " + std::string(metric.name);
      }
      const std::string advice = DidYouMean(parsed.metric, names);
      return InvalidArgument("unknown metric \"%s\"%s", parsed.metric,
                             advice.empty() ? "; one of " + list : advice);
    }
    constexpr std::array<std::string_view, 5> kOperators = {">", ">=", "<", "<=", "="};
    const std::string comparison = Next();
    std::size_t which = 0;
    while (which < kOperators.size() && kOperators.at(which) != comparison) {
      ++which;
    }
    if (which == kOperators.size()) {
      return InvalidArgument("\"%s\" after %s; one of >, >=, <, <=, =", comparison, parsed.metric);
    }
    parsed.comparison = static_cast<ParsedExpectation::Comparison>(which);
    const std::string bound = Next();
    const std::optional<double> number = ParseNumber(bound);
    if (!number) {
      return InvalidArgument("\"%s\" after %s; a number", bound, comparison);
    }
    parsed.bound = *number;
    if (Accept("over")) {
      parsed.mean_over = Next();
    } else if (Accept("times")) {
      parsed.times_exchange = WordsUntil("where");
      if (parsed.times_exchange.empty()) {
        return InvalidArgument("times is followed by an exchange as the table calls it: ps, ring");
      }
    }
    if (mean == parsed.mean_over.empty()) {
      return InvalidArgument("a mean is \"mean %s %s %s over seed\"", parsed.metric, comparison,
                             bound);
    }
    return absl::OkStatus();
  }

  absl::Status ParseWhere(ParsedExpectation& parsed) {
    do {
      ParsedExpectation::Condition condition{.path = Next()};
      const std::string comparison = Next();
      condition.equal = comparison == "=";
      condition.value = WordsUntil("and");
      if ((comparison != "=" && comparison != "!=") || condition.value.empty()) {
        return InvalidArgument("where takes path = value or path != value, joined by and");
      }
      parsed.where.push_back(std::move(condition));
    } while (Accept("and"));
    return absl::OkStatus();
  }

  std::vector<std::string> tokens_;
  std::size_t at_ = 0;
};

}  // namespace

absl::StatusOr<ParsedExpectation> ParseExpectation(std::string_view text) {
  if (text.size() > 1000) {
    return InvalidArgument("longer than 1000 letters; %s", kForm);
  }
  std::vector<std::string> tokens = Split(text);
  if (tokens.empty()) {
    return InvalidArgument("empty; %s", kForm);
  }
  return Parser(std::move(tokens)).Parse();
}

}  // namespace ranklab::experiment
