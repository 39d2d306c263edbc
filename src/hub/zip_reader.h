// Reads a zip archive that may be hostile (over minizip): names are checked, sizes are believed only as upper
// bounds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace whippet {

struct ZipEntry {
  std::string name;            // safe relative path (is_safe_relative_path), a regular file
  uint64_t size = 0;           // unpacked, as declared: read() never gives more
  uint64_t at = 0, index = 0;  // its place in the archive
};

// One thread. Folders are not entries.
class ZipReader {
 public:
  // kNotFound; kCorrupt: no zip archive, or one whose names leave their folder, repeat, or are links; more
  // than 100,000 entries; a declared size beyond what its compressed bytes can hold.
  static Result<ZipReader> open(const std::filesystem::path& path);

  const std::vector<ZipEntry>& entries() const { return entries_; }
  // Gives the content in pieces. kCorrupt: damaged or shorter than declared; or the sink's own error.
  Status read(const ZipEntry& entry, const std::function<Status(std::string_view)>& sink);

 private:
  explicit ZipReader(void* file, std::string path);
  Status list();

  std::unique_ptr<void, void (*)(void*)> file_;
  std::string path_;
  std::vector<ZipEntry> entries_;
};

}  // namespace whippet
