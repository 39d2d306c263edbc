#include "serve/request_id.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/check.h"

namespace whippet::serve {
namespace {

constexpr size_t kMaxGiven = 128;

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
         c == '.' || c == ':';
}

}  // namespace

std::string request_id(std::string_view given) {
  if (!given.empty() && given.size() <= kMaxGiven && std::all_of(given.begin(), given.end(), is_plain))
    return std::string(given);
  std::array<uint8_t, 16> random;
  WH_CHECK(::getrandom(random.data(), random.size(), 0) == static_cast<ssize_t>(random.size()));
  std::string id;
  for (const uint8_t byte : random) {
    id += "0123456789abcdef"[byte >> 4];
    id += "0123456789abcdef"[byte & 15];
  }
  return id;
}

}  // namespace whippet::serve
