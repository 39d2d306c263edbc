// Integer helpers that everything uses.
#pragma once

#include <concepts>

namespace whippet {

template <std::integral T>
constexpr T ceil_div(T a, T b) {
  return (a + b - 1) / b;
}

template <std::integral T>
constexpr T align_up(T a, T b) {
  return ceil_div(a, b) * b;
}

}  // namespace whippet
