#include "base/version.h"

#include "base/version_stamp.h"

namespace whippet {

const char* release() { return WHIPPET_VERSION; }

const char* commit() { return WHIPPET_COMMIT; }

}  // namespace whippet
