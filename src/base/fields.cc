#include "base/fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/ascii.h"

namespace whippet {
namespace {

constexpr uint64_t kKiB = 1024;

struct SizeUnit {
  const char* name;  // lower case
  uint64_t bytes;
};
constexpr SizeUnit kSizeUnits[] = {
    {"", 1},
    {"b", 1},
    {"k", kKiB},
    {"kib", kKiB},
    {"kb", 1000},
    {"m", kKiB* kKiB},
    {"mib", kKiB* kKiB},
    {"mb", 1000'000},
    {"g", kKiB* kKiB* kKiB},
    {"gib", kKiB* kKiB* kKiB},
    {"gb", 1000'000'000},
    {"t", kKiB* kKiB* kKiB* kKiB},
    {"tib", kKiB* kKiB* kKiB* kKiB},
    {"tb", 1000'000'000'000},
};

std::string_view trim(std::string_view text) {
  const char* blanks = " \t\r\n";
  const size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

template <class T>
bool parse_all(std::string_view text, T& value) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours cost 1 each.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        now[j] = std::min(now[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(now);
  }
  return last[b.size()];
}

}  // namespace

Result<int64_t> parse_integer(std::string_view text, int64_t min, int64_t max) {
  int64_t value = 0;
  if (!parse_all(trim(text), value))
    return make_error(Code::kInvalidArgument, "'{}' is not a whole number from {} to {}", text, min, max);
  if (value < min || value > max)
    return make_error(Code::kInvalidArgument, "{} is outside the allowed range {} to {}", value, min, max);
  return value;
}

Result<uint64_t> parse_unsigned(std::string_view text) {
  uint64_t value = 0;
  if (!parse_all(trim(text), value))
    return make_error(Code::kInvalidArgument, "'{}' is not a whole number from 0 to {}", text, UINT64_MAX);
  return value;
}

Result<double> parse_number(std::string_view text) {
  double value = 0;
  if (!parse_all(trim(text), value) || !std::isfinite(value))
    return make_error(Code::kInvalidArgument, "'{}' is not a finite number", text);
  return value;
}

Result<bool> parse_switch(std::string_view text) {
  const std::string word = lower_ascii(trim(text));
  if (word == "true" || word == "on" || word == "yes" || word == "1") return true;
  if (word == "false" || word == "off" || word == "no" || word == "0") return false;
  return make_error(Code::kInvalidArgument, "'{}' is neither true nor false", text);
}

Result<uint64_t> parse_bytes(std::string_view text) {
  const std::string_view all = trim(text);
  const size_t digits = std::min(all.find_first_not_of("0123456789."), all.size());
  const std::string unit = lower_ascii(trim(all.substr(digits)));
  const auto* found = std::find_if(std::begin(kSizeUnits), std::end(kSizeUnits),
                                   [&](const SizeUnit& u) { return unit == u.name; });
  const Error wrong =
      make_error(Code::kInvalidArgument,
                 "'{}' is not a size: write a number with a unit, such as 24MiB, 1.5GiB or 500MB", text);
  if (digits == 0 || found == std::end(kSizeUnits)) return wrong;
  const std::string_view number = all.substr(0, digits);
  uint64_t whole = 0;
  if (parse_all(number, whole)) {
    if (whole > UINT64_MAX / found->bytes)
      return make_error(Code::kInvalidArgument, "{} is more than 64 bits can say", text);
    return whole * found->bytes;
  }
  double value = 0;
  if (!parse_all(number, value)) return wrong;
  value *= static_cast<double>(found->bytes);
  if (!(value < 0x1p63)) return make_error(Code::kInvalidArgument, "{} is more than 64 bits can say", text);
  return static_cast<uint64_t>(value);
}

std::string bytes_to_text(uint64_t bytes) {
  const char* units[] = {"TiB", "GiB", "MiB", "KiB"};
  for (int i = 0; i < 4; ++i) {
    const uint64_t unit = uint64_t{1} << (10 * (4 - i));
    if (bytes >= unit && bytes % unit == 0) return fmt::format("{}{}", bytes / unit, units[i]);
  }
  return std::to_string(bytes);
}

std::string nearest_name(std::string_view wrong, const std::vector<std::string>& candidates) {
  constexpr size_t kLongestName = 64;  // a longer one is no typing mistake, and the distance is quadratic
  if (wrong.size() > kLongestName) return "";
  std::string best;
  size_t best_distance = std::max<size_t>(2, wrong.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(lower_ascii(wrong), lower_ascii(candidate));
    if (distance >= best_distance || distance >= std::max(wrong.size(), candidate.size())) continue;
    best_distance = distance;
    best = candidate;
  }
  return best;
}

std::string did_you_mean(std::string_view wrong, const std::vector<std::string>& candidates) {
  const std::string near = nearest_name(wrong, candidates);
  return near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near);
}

}  // namespace whippet
