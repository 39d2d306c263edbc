// Ranges are cut by their number of digits, then digit by digit from the left: behind a digit that lies
// between those of both bounds anything may follow, behind one that equals a bound's digit the rest is
// compared.
#include "grammar/number_grammar.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "grammar/rules.h"

namespace whippet::grammar {
namespace {

constexpr int kFractionDigits = 6;  // written behind the point, or as many as a bound has
constexpr int kWholeDigits = 9;     // of a side without a bound

using Maybe = std::optional<std::string>;  // nullopt: no text at all

bool only(std::string_view digits, char c) { return digits.find_first_not_of(c) == std::string_view::npos; }

std::string digit(char from, char to) {
  return from == to ? literal(std::string(1, from))
                    : character_class({{static_cast<uint32_t>(from), static_cast<uint32_t>(to)}});
}

std::string digits(size_t low, size_t high) {
  return repeat("[0-9]", static_cast<int64_t>(low), static_cast<int64_t>(high));
}

// As many digits as `bound` has, of a value at least / at most its.
std::string at_least(std::string_view bound) {
  if (only(bound, '0')) return digits(bound.size(), bound.size());
  std::vector<std::string> parts{sequence({digit(bound[0], bound[0]), at_least(bound.substr(1))})};
  if (bound[0] < '9')
    parts.push_back(
        sequence({digit(static_cast<char>(bound[0] + 1), '9'), digits(bound.size() - 1, bound.size() - 1)}));
  return choices(parts);
}

std::string at_most(std::string_view bound) {
  if (only(bound, '9')) return digits(bound.size(), bound.size());
  std::vector<std::string> parts{sequence({digit(bound[0], bound[0]), at_most(bound.substr(1))})};
  if (bound[0] > '0')
    parts.push_back(
        sequence({digit('0', static_cast<char>(bound[0] - 1)), digits(bound.size() - 1, bound.size() - 1)}));
  return choices(parts);
}

// Of as many digits as both have.
std::string between(std::string_view low, std::string_view high) {
  if (low.empty()) return "\"\"";
  if (low[0] == high[0]) return sequence({digit(low[0], low[0]), between(low.substr(1), high.substr(1))});
  std::vector<std::string> parts{sequence({digit(low[0], low[0]), at_least(low.substr(1))})};
  if (high[0] - low[0] > 1)
    parts.push_back(sequence({digit(static_cast<char>(low[0] + 1), static_cast<char>(high[0] - 1)),
                              digits(low.size() - 1, low.size() - 1)}));
  parts.push_back(sequence({digit(high[0], high[0]), at_most(high.substr(1))}));
  return choices(parts);
}

// 0 <= low <= high.
std::string whole_between(int64_t low, int64_t high) {
  std::vector<std::string> parts;
  for (int64_t begin = low; begin <= high;) {
    const std::string first = std::to_string(begin);
    const std::string nines(first.size(), '9');
    const int64_t end = std::min(high, static_cast<int64_t>(std::stoll(nines)));
    parts.push_back(between(first, std::to_string(end)));
    begin = end + 1;
  }
  return choices(parts);
}

// What stands behind the point, whose first digits equal those of the bound so far; `room` digits more fit.
class Fraction {
 public:
  Fraction(std::string low, bool over, std::string high, bool under)
      : low_(std::move(low)), high_(std::move(high)), over_(over), under_(under) {
    const size_t size = std::max(low_.size(), high_.size());
    low_.resize(size, '0');
    high_.resize(size, '0');
    room_ = std::max<size_t>(size, kFractionDigits);
  }

  // The point and what is behind it, or nothing where 0 is within.
  std::string any() const { return repeat(sequence({"\".\"", digits(1, room_)}), 0, 1); }
  Maybe above() const { return with_point(above_from(0), !over_ && only(low_, '0')); }
  Maybe below() const { return with_point(below_from(0), !(under_ && only(high_, '0'))); }
  Maybe within() const {
    const bool zero = !over_ && only(low_, '0') && !(under_ && only(high_, '0'));
    return with_point(within_from(0), zero);
  }

 private:
  static Maybe with_point(const Maybe& behind, bool may_miss) {
    if (!behind || *behind == "\"\"") return may_miss ? Maybe("\"\"") : std::nullopt;
    return repeat(sequence({"\".\"", *behind}), may_miss ? 0 : 1, 1);
  }

  std::string rest(size_t from, size_t at_least = 0) const { return digits(at_least, room_ - from); }

  Maybe above_from(size_t i) const {
    if (only(std::string_view(low_).substr(i), '0')) {
      if (!over_) return rest(i, i == 0 ? 1 : 0);
      return sequence({repeat("\"0\"", 0, 2), digit('1', '9'), digits(0, 3)});
    }
    std::vector<std::string> parts{sequence({digit(low_[i], low_[i]), *above_from(i + 1)})};
    if (low_[i] < '9') parts.push_back(sequence({digit(static_cast<char>(low_[i] + 1), '9'), rest(i + 1)}));
    return choices(parts);
  }

  Maybe below_from(size_t i) const {
    if (only(std::string_view(high_).substr(i), '0')) {
      if (under_) return std::nullopt;
      return repeat("\"0\"", i == 0 ? 1 : 0, static_cast<int64_t>(room_ - i));
    }
    std::vector<std::string> parts;
    if (high_[i] > '0') parts.push_back(sequence({digit('0', static_cast<char>(high_[i] - 1)), rest(i + 1)}));
    if (const Maybe more = below_from(i + 1)) parts.push_back(sequence({digit(high_[i], high_[i]), *more}));
    if (i > 0) parts.emplace_back("\"\"");
    return choices(parts);
  }

  Maybe within_from(size_t i) const {
    if (i == low_.size()) return over_ || under_ ? std::nullopt : Maybe(i == 0 ? "\"\"" : rest_of_zeros(i));
    if (low_[i] == high_[i]) {
      const Maybe more = within_from(i + 1);
      if (!more) return std::nullopt;
      return sequence({digit(low_[i], low_[i]), *more});
    }
    std::vector<std::string> parts{sequence({digit(low_[i], low_[i]), *above_from(i + 1)})};
    if (high_[i] - low_[i] > 1)
      parts.push_back(
          sequence({digit(static_cast<char>(low_[i] + 1), static_cast<char>(high_[i] - 1)), rest(i + 1)}));
    if (const Maybe more = below_from(i + 1)) parts.push_back(sequence({digit(high_[i], high_[i]), *more}));
    return choices(parts);
  }

  std::string rest_of_zeros(size_t i) const { return repeat("\"0\"", 0, static_cast<int64_t>(room_ - i)); }

  std::string low_, high_;
  bool over_, under_;
  size_t room_ = 0;
};

// 0 <= low <= high, none of them with a sign.
void add_unsigned(const Bound& low, const Bound& high, const std::string& sign,
                  std::vector<std::string>& parts) {
  const auto add = [&](int64_t first, int64_t last, const Maybe& fraction) {
    if (fraction && first <= last) parts.push_back(sequence({sign, whole_between(first, last), *fraction}));
  };
  const int64_t from = low.value.whole, to = high.value.whole;
  const Fraction fraction(low.value.fraction, low.excluded, high.value.fraction, high.excluded);
  if (from > to) return;
  if (from == to) return add(from, to, fraction.within());
  add(from, from, fraction.above());
  add(from + 1, to - 1, fraction.any());
  add(to, to, fraction.below());
}

Bound unsigned_of(Bound bound) {
  bound.value.negative = false;
  return bound;
}

bool is_below(const Decimal& a, const Decimal& b) {  // without signs
  return a.whole != b.whole ? a.whole < b.whole : a.fraction < b.fraction;
}

}  // namespace

Result<Decimal> to_decimal(double value) {
  if (!(std::abs(value) < 1e15))
    return make_error(Code::kInvalidArgument, "bounds of numbers beyond 1e15 are not supported");
  std::string text = fmt::format("{:.9f}", value);
  if (std::stod(text) != value)
    return make_error(Code::kInvalidArgument,
                      "bounds of more than nine digits behind the point are not supported");
  Decimal decimal{.negative = text[0] == '-', .whole = 0, .fraction = {}};
  if (decimal.negative) text.erase(0, 1);
  const size_t point = text.find('.');
  decimal.whole = std::stoll(text.substr(0, point));
  decimal.fraction = text.substr(point + 1);
  decimal.fraction.erase(decimal.fraction.find_last_not_of('0') + 1);
  if (decimal.whole == 0 && decimal.fraction.empty()) decimal.negative = false;
  return decimal;
}

std::string any_integer() { return "(\"0\" | \"-\"? [1-9] [0-9]{0,17})"; }

std::string any_number() {
  return "(\"-\"? (\"0\" | [1-9] [0-9]{0,15}) (\".\" [0-9]{1,15})? ([eE] [+\\u002d]? [0-9]{1,2})?)";
}

Result<std::string> integer_between(int64_t low, int64_t high) {
  low = std::max(low, -kLargestInteger);
  high = std::min(high, kLargestInteger);
  if (low > high) return make_error(Code::kInvalidArgument, "no integer lies between its bounds");
  std::vector<std::string> parts;
  if (high >= 0) parts.push_back(whole_between(std::max<int64_t>(low, 0), high));
  if (low < 0) parts.push_back(sequence({"\"-\"", whole_between(std::max<int64_t>(-high, 1), -low)}));
  return choices(parts);
}

Result<std::string> number_between(const std::optional<Bound>& low, const std::optional<Bound>& high) {
  int64_t largest = static_cast<int64_t>(std::pow(10, kWholeDigits)) - 1;
  for (const auto& bound : {low, high})
    if (bound) largest = std::max(largest, 10 * bound->value.whole + 9);
  const Bound lower = low.value_or(Bound{.value = {.negative = true, .whole = largest, .fraction = {}}});
  const Bound upper = high.value_or(Bound{.value = {.negative = false, .whole = largest, .fraction = {}}});
  const Bound zero{}, above_zero{.value = {}, .excluded = true};
  std::vector<std::string> parts;
  const auto add = [&](const Bound& from, const Bound& to, const std::string& sign) {
    if (!is_below(to.value, from.value)) add_unsigned(from, to, sign, parts);
  };
  if (!upper.value.negative) add(lower.value.negative ? zero : lower, upper, "");
  if (lower.value.negative)
    add(upper.value.negative ? unsigned_of(upper) : above_zero, unsigned_of(lower), "\"-\"");
  if (parts.empty()) return make_error(Code::kInvalidArgument, "no number lies between its bounds");
  return choices(parts);
}

}  // namespace whippet::grammar
