// The suggestion in a message about a word that nobody knows: "rign"; did you mean "ring"?
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace ranklab {

// The word of `words` with the least edit distance (insert, delete, replace, swap of neighbours;
// letters compare without case), the first of equals. Empty when none is near: when the distance
// exceeds a third of the longer word, rounded up. The result points into `words`.
// Source: optimal string alignment, after F. J. Damerau, CACM 7(3), 1964.
std::string_view Nearest(std::string_view word, std::span<const std::string_view> words);

// `; did you mean "ring"?`, or nothing when no word is near: to be appended to a message.
std::string DidYouMean(std::string_view word, std::span<const std::string_view> words);

// "one of ring, tree": what would be right, in a message. Requires: at least one word.
std::string OneOf(std::span<const std::string_view> words);

}  // namespace ranklab
