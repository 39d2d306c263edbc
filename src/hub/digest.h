// A running checksum of a file as it arrives: SHA-256, or git's SHA-1 of a blob.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"

namespace whippet {

class Digest {
 public:
  static Digest sha256();
  // SHA-1 over "blob <size>\0" and the content: what git and Hugging Face call a small file.
  static Digest git_blob(uint64_t size);

  void update(std::string_view bytes);
  std::string bytes() &&;  // the raw digest
  std::string hex() &&;    // in lower case

 private:
  explicit Digest(const void* algorithm);

  std::unique_ptr<void, void (*)(void*)> context_;
};

// kNotFound when it cannot be opened or read to `limit` bytes, where reading stops.
Status update_from_file(Digest& digest, const std::filesystem::path& path, uint64_t limit);

}  // namespace whippet
