#include "serve/ignored_fields.h"

#include "base/log.h"
#include "serve/http_message.h"

namespace whippet::serve {
namespace {

constexpr size_t kMaxNames = 200;       // in the log
constexpr size_t kMaxHeader = 1 << 10;  // bytes
constexpr size_t kMaxName = 64;         // bytes

}  // namespace

std::string IgnoredFields::note(const std::vector<std::string>& names) {
  std::string header;
  for (const std::string& name : names) {
    const std::string shown = printable(name, kMaxName);
    if (header.size() + shown.size() < kMaxHeader) header += (header.empty() ? "" : ", ") + shown;
    const std::lock_guard lock(mutex_);
    if (known_.size() < kMaxNames && known_.insert(shown).second)
      log_warning("a request has the field '{}', which means nothing here and is ignored", shown);
  }
  return header;
}

}  // namespace whippet::serve
