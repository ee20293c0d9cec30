// How far a long run is: a bar on a terminal, a line every few seconds elsewhere. Standard error.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace ranklab::cli {

class Progress {
 public:
  explicit Progress(std::int64_t total);
  ~Progress();  // clears the bar

  // `label`: what is running now.
  void Update(std::int64_t done, const std::string& label);

 private:
  using Clock = std::chrono::steady_clock;

  const std::int64_t total_;
  const bool terminal_;
  const Clock::time_point started_;
  Clock::time_point printed_{};
};

}  // namespace ranklab::cli
