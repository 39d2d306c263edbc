// What this binary was built from; shown by `whippet --version`.
#pragma once

namespace whippet {

// The release: "0.1.0".
const char* release();

// The commit: 12 hex digits, "-dirty" added where tracked files differed; "unknown" outside a checkout.
const char* commit();

}  // namespace whippet
