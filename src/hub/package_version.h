// Versions of packages, as far as choosing a wheel needs them: release numbers in order (PEP 440).
#pragma once

#include <string_view>

namespace whippet {

// Numbers are compared as numbers, missing ones are 0; a suffix (rc1, dev0) comes before the plain release,
// and post releases and local versions after it.
bool version_less(std::string_view a, std::string_view b);
bool same_version(std::string_view a, std::string_view b);
// Has an a, b, rc or dev part.
bool is_prerelease(std::string_view version);

}  // namespace whippet
