// "Did you mean": names of cached models that are near to one that was not found.
#pragma once

#include <string>

#include "base/error.h"
#include "hub/environment.h"

namespace whippet {

// The error, with the nearest names of the caches added where there are any (kNotFound and kInvalidArgument
// only).
Error with_suggestion(Error error, const std::string& name, const HubConfig& config);

// Insertions, deletions, replacements and swaps of neighbours between the two, case ignored; at most `limit`
// + 1.
int edit_distance(const std::string& a, const std::string& b, int limit);

}  // namespace whippet
