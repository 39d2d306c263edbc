// A file that is written beside its final name and takes it only when it is whole: fsync, then an atomic
// rename. Also the questions about the disk that belong to it. Used by downloads and by the unpacking of
// wheels.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "hub/environment.h"

namespace whippet {

class OutputFile {
 public:
  // Opens or creates `path`; what it holds already stays (size() bytes of it).
  static Result<OutputFile> open(const std::filesystem::path& path);
  OutputFile(OutputFile&& other) noexcept : path_(std::move(other.path_)), fd_(other.fd_) { other.fd_ = -1; }
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  uint64_t size() const;
  Status truncate(uint64_t size);
  // At an explicit place: two processes that write the same content (on a disk whose locks do nothing) do no
  // harm. kResourceExhausted when the disk is full.
  Status write_at(uint64_t offset, std::string_view bytes);
  // Makes the content durable and gives it its final name, replacing what was there.
  Status commit(const std::filesystem::path& target);

 private:
  OutputFile(std::filesystem::path path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::filesystem::path path_;
  int fd_;
};

// kResourceExhausted when the disk of `folder` (or of its first parent that exists) has less than `bytes` and
// a small margin free; names both numbers and the folder.
Status check_free_space(const std::filesystem::path& folder, uint64_t bytes, const HubConfig& config);

// fsync of a folder, so that a rename in it survives a power cut. Best effort.
void sync_folder(const std::filesystem::path& folder);

// Creates `folder` and its parents.
Status make_folders(const std::filesystem::path& folder);

}  // namespace whippet
