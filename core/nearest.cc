#include "core/nearest.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/check.h"

namespace ranklab {
namespace {

char Lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

bool Same(char a, char b) { return Lower(a) == Lower(b); }

// Rows of the usual table; a swap of neighbours looks two rows back.
std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) {
    row[j] = j;
  }
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (Same(a[i - 1], b[j - 1]) ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && Same(a[i - 1], b[j - 2]) && Same(a[i - 2], b[j - 1])) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

}  // namespace

std::string_view Nearest(std::string_view word, std::span<const std::string_view> words) {
  std::string_view nearest;
  std::size_t least = 0;
  for (const std::string_view candidate : words) {
    const std::size_t distance = EditDistance(word, candidate);
    const std::size_t allowed = (std::max(word.size(), candidate.size()) + 2) / 3;
    if (distance <= allowed && (nearest.empty() || distance < least)) {
      nearest = candidate;
      least = distance;
    }
  }
  return nearest;
}

std::string DidYouMean(std::string_view word, std::span<const std::string_view> words) {
  const std::string_view nearest = Nearest(word, words);
  if (nearest.empty()) {
    return "";
  }
  return "; did you mean \"" + std::string(nearest) + "\"?";
}

std::string OneOf(std::span<const std::string_view> words) {
  RANKLAB_CHECK(!words.empty());
  std::string text = "one of ";
  for (std::size_t i = 0; i < words.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::string(words[i]);
  }
  return text;
}

}  // namespace ranklab
