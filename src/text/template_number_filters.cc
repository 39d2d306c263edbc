// Filters that make numbers: abs, int, float, round, sum.
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>

#include "text/template_access.h"
#include "text/template_compare.h"
#include "text/template_filters.h"
#include "text/template_operators.h"
#include "text/template_text.h"

namespace whippet::jinja {
namespace {

std::string_view trimmed(std::string_view text) {
  const Range range = strip_range(text, nullptr, true, true);
  return text.substr(range.first, range.second - range.first);
}

std::optional<double> parse_float(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  double number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<Integer> parse_integer(std::string_view text, int base) {
  text = trimmed(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  int64_t integer = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), integer, base);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size()) return std::nullopt;
  return integer;
}

std::optional<Integer> truncated(double number) {
  // Beyond 2^63 a float has no place in a 64-bit integer; neither has what is no number.
  if (!(std::fabs(number) < 9.2e18)) return std::nullopt;
  return static_cast<Integer>(number);
}

Result<Value> to_int(Runtime&, const Value& value, const Arguments& arguments) {
  const Value otherwise = is_absent(arguments[0]) ? Value(Integer{0}) : arguments[0];
  WH_ASSIGN(const int64_t base, integer_argument(arguments[1], "base", 10));
  if (base < 2 || base > 36) return type_error("'base' must be between 2 and 36, not {}", base);
  std::optional<Integer> integer = as_integer(value);
  std::optional<double> number;
  if (const auto* given = std::get_if<double>(&value)) number = *given;
  if (const String* string = as_string(value)) {
    integer = parse_integer(string->text, static_cast<int>(base));
    number = parse_float(string->text);
  }
  if (!integer && number) integer = truncated(*number);
  return integer ? Value(*integer) : otherwise;
}

Result<Value> to_float(Runtime&, const Value& value, const Arguments& arguments) {
  std::optional<double> number = as_number(value);
  if (const String* string = as_string(value)) number = parse_float(string->text);
  if (number) return Value(*number);
  return is_absent(arguments[0]) ? Value(0.0) : arguments[0];
}

Result<Value> absolute(Runtime&, const Value& value, const Arguments&) {
  if (const auto integer = as_integer(value)) return Value(*integer < 0 ? -*integer : *integer);
  if (const auto* number = std::get_if<double>(&value)) return Value(std::fabs(*number));
  return type_error("abs needs a number, not {}", type_name(value));
}

// Rounds the exact binary value, half to even, as Python does; printf does so too.
double round_decimal(double number, int precision) {
  if (precision < 0) {
    const double scale = std::pow(10.0, -precision);
    return std::nearbyint(number / scale) * scale;
  }
  const int size = std::snprintf(nullptr, 0, "%.*f", precision, number);
  std::string text(static_cast<size_t>(size) + 1, '\0');
  std::snprintf(text.data(), text.size(), "%.*f", precision, number);
  return parse_float(std::string_view(text).substr(0, static_cast<size_t>(size))).value_or(number);
}

Result<Value> round_filter(Runtime&, const Value& value, const Arguments& arguments) {
  WH_ASSIGN(const int64_t precision, integer_argument(arguments[0], "precision", 0));
  WH_ASSIGN(const String* method, string_argument(arguments[1], "method"));
  const std::string_view how = method != nullptr ? method->text : "common";
  const auto number = as_number(value);
  if (!number) return type_error("round needs a number, not {}", type_name(value));
  if (precision < -300 || precision > 300) return type_error("'precision' must be between -300 and 300");
  const int digits = static_cast<int>(precision);
  if (how == "common") {
    if (const auto integer = as_integer(value); integer && digits >= 0) return Value(*integer);
    const double rounded = std::isfinite(*number) ? round_decimal(*number, digits) : *number;
    if (!as_integer(value)) return Value(rounded);
    return Value(truncated(rounded).value_or(0));
  }
  if (how != "ceil" && how != "floor") return type_error("'method' must be common, ceil or floor");
  const double scale = std::pow(10.0, digits);
  return Value((how == "ceil" ? std::ceil(*number * scale) : std::floor(*number * scale)) / scale);
}

Result<Value> sum(Runtime& runtime, const Value& value, const Arguments& arguments) {
  Value total = is_absent(arguments[1]) ? Value(Integer{0}) : arguments[1];
  WH_ASSIGN(const std::span<const Value> items, iterate(runtime, value));
  for (const Value& item : items) {
    Value part = item;
    if (!is_absent(arguments[0]) && !is_none(arguments[0])) {
      WH_ASSIGN(part, follow_path(runtime, item, arguments[0]));
    }
    WH_TRY(runtime.step());
    WH_ASSIGN(total, calculate(runtime, Operator::kAdd, total, part));
  }
  return total;
}

constexpr Filter kFilters[] = {
    {"abs", {}, 0, absolute},
    {"float", {"default"}, 0, to_float},
    {"int", {"default", "base"}, 0, to_int},
    {"round", {"precision", "method"}, 0, round_filter},
    {"sum", {"attribute", "start"}, 0, sum},
};

}  // namespace

std::span<const Filter> number_filters() { return kFilters; }

}  // namespace whippet::jinja
