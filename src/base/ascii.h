// Case of names that are ASCII by their own rules: headers, hosts, flags, file types. Other bytes stay.
#pragma once

#include <string>
#include <string_view>

namespace whippet {

inline std::string lower_ascii(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

}  // namespace whippet
