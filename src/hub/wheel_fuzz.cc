// Any bytes as a zip archive: every entry is read to its end or refused, and never gives more than it
// declared.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "hub/model_name.h"
#include "hub/zip_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace whippet;
  static const int file = ::memfd_create("wheel", 0);
  WH_CHECK(file >= 0 && ::ftruncate(file, 0) == 0);
  WH_CHECK(::pwrite(file, data, size, 0) == static_cast<ssize_t>(size));
  auto zip = ZipReader::open("/proc/self/fd/" + std::to_string(file));
  if (!zip.ok()) return 0;
  constexpr uint64_t kEnough = 4u << 20;
  for (const ZipEntry& entry : zip->entries()) {
    WH_CHECK(is_safe_relative_path(entry.name));
    uint64_t done = 0;
    const Status status = zip->read(entry, [&](std::string_view piece) -> Status {
      done += piece.size();
      WH_CHECK(done <= entry.size);
      if (done > kEnough) return make_error(Code::kCancelled, "enough");
      return {};
    });
    WH_CHECK(!status.ok() || done == entry.size);
  }
  return 0;
}
