// An advisory lock between processes: flock on a file of its own, released with the object or with the
// process. The same protocol as Hugging Face's tools, so that two programs do not fetch one blob at once.
#pragma once

#include <filesystem>
#include <string>

#include "base/error.h"
#include "hub/environment.h"

namespace whippet {

class FileLock {
 public:
  // Waits for the lock; says once that it waits, and for `what`. kCancelled, kUnavailable (cannot be
  // created).
  static Result<FileLock> acquire(const std::filesystem::path& path, const std::string& what,
                                  const HubConfig& config);
  FileLock(FileLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}

  int fd_;
};

}  // namespace whippet
