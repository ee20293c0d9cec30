#include "worker/digits.h"

#include <array>
#include <charconv>
#include <span>
#include <vector>

#include "core/random.h"
#include "core/status.h"
#include "worker/streams.h"

// The file as it is, between two symbols, so that a program needs no data folder where it runs.
asm(".pushsection .rodata\n"
    ".globl ranklab_digits_begin\n"
    "ranklab_digits_begin:\n"
    ".incbin \"" RANKLAB_DIGITS_CSV
    "\"\n"
    ".globl ranklab_digits_end\n"
    "ranklab_digits_end:\n"
    ".popsection\n");
extern "C" const char ranklab_digits_begin[];
extern "C" const char ranklab_digits_end[];

namespace ranklab::worker {
namespace {

constexpr int kPixels = 64;
constexpr int kClasses = 10;
constexpr int kLargestPixel = 16;
constexpr std::int64_t kTrainSamples = 1437;

struct Digit {
  std::array<int, kPixels + 1> values{};  // pixels, then the label
};

// Takes one line off `text`.
absl::StatusOr<Digit> TakeDigit(std::string_view& text, std::int64_t line) {
  Digit digit;
  for (int column = 0; column <= kPixels; ++column) {
    int& value = digit.values[column];
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const int largest = column == kPixels ? kClasses - 1 : kLargestPixel;
    if (error != std::errc() || value < 0 || value > largest) {
      return InvalidArgument("digits.csv:%d: column %d is not a number from 0 to %d", line,
                             column + 1, largest);
    }
    text.remove_prefix(end - text.data());
    if (!text.empty() && text.front() == '\r') {
      text.remove_prefix(1);
    }
    if (text.empty() || text.front() != (column == kPixels ? '\n' : ',')) {
      return InvalidArgument("digits.csv:%d: column %d is not followed by a %s", line, column + 1,
                             column == kPixels ? "new line" : "comma");
    }
    text.remove_prefix(1);
  }
  return digit;
}

void Append(const Digit& digit, Split& split) {
  for (int pixel = 0; pixel < kPixels; ++pixel) {
    split.inputs.push_back(static_cast<float>(digit.values[pixel]) / kLargestPixel);
  }
  split.labels.push_back(digit.values[kPixels]);
}

}  // namespace

std::string_view DigitsText() {
  return {ranklab_digits_begin,
          static_cast<std::size_t>(ranklab_digits_end - ranklab_digits_begin)};
}

absl::StatusOr<Dataset> LoadDigits(std::uint64_t split_seed) {
  std::vector<Digit> digits;
  for (std::string_view text = DigitsText(); !text.empty();) {
    ASSIGN_OR_RETURN(Digit digit, TakeDigit(text, static_cast<std::int64_t>(digits.size()) + 1));
    digits.push_back(digit);
  }
  StreamOf(split_seed, Stream::kDataSplit).Shuffle(std::span(digits));
  Dataset data{.inputs = kPixels, .classes = kClasses, .train = {}, .test = {}};
  for (const Digit& digit : digits) {
    Append(digit, data.train.samples() < kTrainSamples ? data.train : data.test);
  }
  return data;
}

}  // namespace ranklab::worker
