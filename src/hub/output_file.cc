#include "hub/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/progress.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t kMargin = 16u << 20;

Error write_error(const fs::path& path, int number) {
  const bool full = number == ENOSPC || number == EDQUOT || number == EFBIG;
  if (!full)
    return make_error(Code::kUnavailable, "cannot write {}: {}", path.string(), std::strerror(number));
  return make_error(Code::kResourceExhausted,
                    "no space left while writing {} ({}): free some and try again, what is there is kept",
                    path.string(), std::strerror(number));
}

uint64_t free_bytes(const fs::path& folder) {
  struct statvfs disk;
  if (::statvfs(folder.c_str(), &disk) != 0) return UINT64_MAX;
  return static_cast<uint64_t>(disk.f_bavail) * disk.f_frsize;
}

}  // namespace

Result<OutputFile> OutputFile::open(const fs::path& path) {
  WH_TRY(make_folders(path.parent_path()));
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return write_error(path, errno);
  return OutputFile(path, fd);
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) ::close(fd_);
}

uint64_t OutputFile::size() const {
  struct stat info;
  return ::fstat(fd_, &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
}

Status OutputFile::truncate(uint64_t size) {
  if (::ftruncate(fd_, static_cast<off_t>(size)) != 0) return write_error(path_, errno);
  return {};
}

Status OutputFile::write_at(uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return write_error(path_, count < 0 ? errno : ENOSPC);
    bytes.remove_prefix(static_cast<size_t>(count));
    offset += static_cast<uint64_t>(count);
  }
  return {};
}

Status OutputFile::commit(const fs::path& target) {
  // A full disk may only show here (delayed allocation, network disks).
  if (::fsync(fd_) != 0 && errno != EINVAL && errno != EROFS) return write_error(path_, errno);
  std::error_code failed;
  fs::rename(path_, target, failed);
  if (failed) {
    return make_error(Code::kUnavailable, "cannot rename {} to {}: {}", path_.string(), target.string(),
                      failed.message());
  }
  sync_folder(target.parent_path());
  return {};
}

Status check_free_space(const fs::path& folder, uint64_t bytes, const HubConfig& config) {
  fs::path existing = folder;
  std::error_code ignored;
  while (!fs::exists(existing, ignored) && existing.has_parent_path() && existing != existing.parent_path()) {
    existing = existing.parent_path();
  }
  if (existing.empty()) existing = ".";
  const uint64_t available = config.free_bytes ? config.free_bytes(existing) : free_bytes(existing);
  if (available >= kMargin && available - kMargin >= bytes) return {};
  return make_error(
      Code::kResourceExhausted,
      "not enough disk space in {}: {} are needed, {} are free. Free some, or point HF_HOME (or "
      "XDG_CACHE_HOME) at a larger disk",
      existing.string(), format_bytes(bytes), format_bytes(available));
}

void sync_folder(const fs::path& folder) {
  const int fd = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

Status make_folders(const fs::path& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (!failed || folder.empty()) return {};
  return make_error(failed == std::errc::no_space_on_device ? Code::kResourceExhausted : Code::kUnavailable,
                    "cannot create the folder {}: {}", folder.string(), failed.message());
}

}  // namespace whippet
