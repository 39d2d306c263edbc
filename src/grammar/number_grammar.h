// Numbers between bounds, as JSON spells them. Used by schema_grammar.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"

namespace whippet::grammar {

constexpr int64_t kLargestInteger = 999'999'999'999'999'999;  // a number of more digits is not written

// A bound as it is written: -12.5 is {true, 12, "5"}.
struct Decimal {
  bool negative = false;
  int64_t whole = 0;
  std::string fraction;  // digits, without zeros at the end
};

// kInvalidArgument: beyond 1e15, or more than nine digits behind the point.
Result<Decimal> to_decimal(double value);

struct Bound {
  Decimal value;
  bool excluded = false;  // the bound itself
};

// EBNF expressions. Of integers and numbers that have no bounds at all:
std::string any_integer();
std::string any_number();
// low <= x <= high; kInvalidArgument where there is none.
Result<std::string> integer_between(int64_t low, int64_t high);
// Without an exponent, and with about six digits behind the point; kInvalidArgument where there is none.
Result<std::string> number_between(const std::optional<Bound>& low, const std::optional<Bound>& high);

}  // namespace whippet::grammar
