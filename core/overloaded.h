#pragma once

namespace ranklab {

// std::visit(Overloaded{[](const A&) {...}, [](const B&) {...}}, variant)
template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace ranklab
