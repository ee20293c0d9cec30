// Numbers as people read them: three digits that count, the unit that suits the size.
#pragma once

#include <string>

namespace ranklab::report {

std::string PrintSeconds(double seconds);  // "12.3 ms", "845 us", "1.20 s"; "-" for 0
std::string PrintRate(double per_second);  // "12,300"; "-" for 0
std::string PrintShare(double share);      // "0.83"; "-" for 0
std::string PrintLoss(double loss);        // "0.0123", "diverged"
std::string PrintFactor(double factor);    // "1.83"

}  // namespace ranklab::report
