#include "hub/package_version.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace whippet {
namespace {

struct Version {
  std::vector<uint64_t> numbers;
  int kind = 0;  // -1 pre-release, 0 release, 1 post release
  std::string suffix;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

Version parse(std::string_view text) {
  Version version;
  if (text.starts_with('v') || text.starts_with('V')) text.remove_prefix(1);
  while (!text.empty() && is_digit(text.front())) {
    uint64_t number = 0;
    while (!text.empty() && is_digit(text.front())) {
      number = std::min<uint64_t>(number, UINT64_MAX / 16) * 10 + static_cast<uint64_t>(text.front() - '0');
      text.remove_prefix(1);
    }
    version.numbers.push_back(number);
    if (text.size() < 2 || text[0] != '.' || !is_digit(text[1])) break;
    text.remove_prefix(1);
  }
  while (!version.numbers.empty() && version.numbers.back() == 0) version.numbers.pop_back();
  version.suffix = text;
  if (!text.empty()) {
    const bool after = text.find("post") != text.npos || text.front() == '+' || text.front() == '-';
    version.kind = after && text.find("dev") == text.npos ? 1 : -1;
  }
  return version;
}

}  // namespace

bool version_less(std::string_view a, std::string_view b) {
  const Version left = parse(a), right = parse(b);
  return std::tie(left.numbers, left.kind, left.suffix) < std::tie(right.numbers, right.kind, right.suffix);
}

bool same_version(std::string_view a, std::string_view b) {
  return !version_less(a, b) && !version_less(b, a);
}

bool is_prerelease(std::string_view version) { return parse(version).kind < 0; }

}  // namespace whippet
