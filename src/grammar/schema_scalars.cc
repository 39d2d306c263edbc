// The types that hold no other: integers, numbers, strings.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "grammar/number_grammar.h"
#include "grammar/regex_grammar.h"
#include "grammar/schema_formats.h"
#include "grammar/schema_reader.h"

namespace whippet::grammar {
namespace {

constexpr int64_t kMostMultipleOf = 100;  // remainders, each a rule
constexpr int64_t kMostCounted = 256;     // characters of a string, each a rule
constexpr int64_t kMostListed = 2000;     // multiples between bounds, each written out

// The double under a keyword; nullopt: it is not there.
Result<std::optional<double>> number_at(const SchemaAt& place, const char* keyword) {
  if (!place.has(keyword)) return std::optional<double>();
  const Schema& value = place.schema.at(keyword);
  if (!value.is_number()) return schema_error(place.path, keyword, "expected a number");
  return std::optional<double>(value.get<double>());
}

// The nearest integer bound of an integer type; whole numbers stay exact.
Result<int64_t> integer_bound(const SchemaAt& place, const char* keyword, bool low, int64_t otherwise) {
  WH_ASSIGN(const std::optional<double> number, number_at(place, keyword));
  if (!number) return otherwise;
  if (std::abs(*number) >= static_cast<double>(kLargestInteger)) {
    return *number > 0 ? kLargestInteger : -kLargestInteger;
  }
  const Schema& value = place.schema.at(keyword);
  const bool excluded = std::string_view(keyword).starts_with("exclusive");
  if (value.is_number_integer()) return value.get<int64_t>() + (excluded ? (low ? 1 : -1) : 0);
  const double rounded = low ? std::ceil(*number) : std::floor(*number);
  return static_cast<int64_t>(rounded) + (excluded && rounded == *number ? (low ? 1 : -1) : 0);
}

Result<std::optional<Bound>> number_bound(const SchemaAt& place, const char* keyword, const char* exclusive,
                                          bool low) {
  WH_ASSIGN(const std::optional<double> with, number_at(place, keyword));
  WH_ASSIGN(const std::optional<double> without, number_at(place, exclusive));
  if (!with && !without) return std::optional<Bound>();
  const bool excluded = without && (!with || (low ? *without >= *with : *without <= *with));
  Result<Decimal> decimal = to_decimal(excluded ? *without : *with);
  if (!decimal.ok()) return schema_error(place.path, excluded ? exclusive : keyword, decimal.error().message);
  return std::optional<Bound>(Bound{.value = std::move(decimal).value(), .excluded = excluded});
}

}  // namespace

Result<std::string> SchemaReader::integer(const SchemaAt& place) {
  WH_ASSIGN(const int64_t from, integer_bound(place, "minimum", true, -kLargestInteger));
  WH_ASSIGN(const int64_t over, integer_bound(place, "exclusiveMinimum", true, -kLargestInteger));
  WH_ASSIGN(const int64_t to, integer_bound(place, "maximum", false, kLargestInteger));
  WH_ASSIGN(const int64_t under, integer_bound(place, "exclusiveMaximum", false, kLargestInteger));
  const int64_t low = std::max(from, over), high = std::min(to, under);
  const bool bounded = low > -kLargestInteger || high < kLargestInteger;
  WH_ASSIGN(const std::optional<double> multiple, number_at(place, "multipleOf"));
  if (multiple && *multiple != 1) {
    if (!(*multiple >= 1) || *multiple != std::floor(*multiple) || *multiple > 1e9)
      return schema_error(place.path, "multipleOf", "of an integer, expected a whole number of 1 or more");
    return multiples(place, static_cast<int64_t>(*multiple), low, high, bounded);
  }
  if (!bounded) return json_.integer();
  Result<std::string> range = integer_between(low, high);
  if (!range.ok()) return schema_error(place.path, "maximum", range.error().message);
  return range;
}

// Between bounds they are written out; without, one rule for each remainder reads digit by digit.
Result<std::string> SchemaReader::multiples(const SchemaAt& place, int64_t of, int64_t low, int64_t high,
                                            bool bounded) {
  if (bounded) {
    const int64_t first = low / of + (low > 0 && low % of != 0 ? 1 : 0);
    const int64_t last = high / of - (high < 0 && high % of != 0 ? 1 : 0);
    if (first > last) return schema_error(place.path, "multipleOf", "no multiple lies between the bounds");
    if (last - first >= kMostListed)
      return schema_error(place.path, "multipleOf",
                          fmt::format("more than {} multiples lie between the bounds", kMostListed));
    std::vector<std::string> parts;
    for (int64_t i = first; i <= last; ++i) parts.push_back(literal(std::to_string(i * of)));
    return choices(parts);
  }
  if (of > kMostMultipleOf)
    return schema_error(place.path, "multipleOf",
                        fmt::format("beyond {} it needs a minimum and a maximum", kMostMultipleOf));
  std::vector<std::string> names;
  for (int64_t i = 0; i < of; ++i) names.push_back(json_.rules().reserve("remainder"));
  const auto digits = [&](int64_t remainder, int64_t from, std::vector<std::string> parts) {
    for (int64_t digit = from; digit <= 9; ++digit)
      parts.push_back(sequence(
          {literal(std::to_string(digit)), names[static_cast<size_t>((remainder * 10 + digit) % of)]}));
    return choices(parts);
  };
  for (int64_t i = 0; i < of; ++i)
    json_.rules().define(
        names[static_cast<size_t>(i)],
        digits(i, 0, i == 0 ? std::vector<std::string>{"\"\""} : std::vector<std::string>{}));
  return choices({"\"0\"", sequence({"\"-\"?", digits(0, 1, {})})});
}

Result<std::string> SchemaReader::number(const SchemaAt& place) {
  if (place.has("multipleOf")) return schema_error(place.path, "multipleOf", "supported of integers only");
  WH_ASSIGN(const std::optional<Bound> low, number_bound(place, "minimum", "exclusiveMinimum", true));
  WH_ASSIGN(const std::optional<Bound> high, number_bound(place, "maximum", "exclusiveMaximum", false));
  if (!low && !high) return json_.number();
  Result<std::string> range = number_between(low, high);
  if (!range.ok())
    return schema_error(place.path, place.has("maximum") ? "maximum" : "exclusiveMaximum",
                        range.error().message);
  return json_.rules().add("number", std::move(range).value());
}

Result<std::string> SchemaReader::string(const SchemaAt& place) {
  for (const char* keyword : {"pattern", "format"})
    if (place.has(keyword) && !place.schema.at(keyword).is_string())
      return schema_error(place.path, keyword, "expected a text");
  std::optional<std::string_view> form;
  if (place.has("format")) {
    WH_ASSIGN(form, format_pattern(place, place.schema.at("format").get_ref<const std::string&>()));
  }
  WH_ASSIGN(const int64_t low, count_at(place, "minLength", 0));
  WH_ASSIGN(const int64_t high, count_at(place, "maxLength", -1));
  const bool sized = low > 0 || high >= 0;
  if (sized && (place.has("pattern") || form))
    return schema_error(place.path, low > 0 ? "minLength" : "maxLength",
                        "not supported beside a pattern or format: write it into the pattern");
  if (place.has("pattern") && form)
    return schema_error(place.path, "pattern", "not supported beside a format");
  if (place.has("pattern") || form) {
    const std::string_view pattern = form ? *form : place.schema.at("pattern").get_ref<const std::string&>();
    Result<std::string> read = regex_to_grammar(pattern, RegexPlace::kJsonString);
    if (!read.ok()) return schema_error(place.path, "pattern", read.error().message);
    return json_.rules().add("text", json_.quoted(*read));
  }
  if (!sized) return json_.string();
  if (high >= 0 && high < low) return schema_error(place.path, "maxLength", "below minLength");
  if (std::max(low, high) <= kMostCounted) return json_.string_of(low, high);
  // Plain characters alone are counted: the library takes seconds and more over counted ones that may be
  // escaped.
  const std::string plain = json_.plain_character();
  if (high >= 0) return json_.rules().add("text", json_.quoted(repeat(plain, low, high)));
  return json_.rules().add("text", json_.quoted(repeat(plain, low, -1)));
}

}  // namespace whippet::grammar
