#include "hub/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/log.h"

namespace whippet {
namespace {

constexpr std::chrono::milliseconds kPoll{50};

// A holder may remove the file when it is done: a lock on a file that no path names any more guards nothing.
bool still_named(int fd, const std::filesystem::path& path) {
  struct stat open_file, named;
  return ::fstat(fd, &open_file) == 0 && ::stat(path.c_str(), &named) == 0 &&
         open_file.st_dev == named.st_dev && open_file.st_ino == named.st_ino;
}

}  // namespace

Result<FileLock> FileLock::acquire(const std::filesystem::path& path, const std::string& what,
                                   const HubConfig& config) {
  std::error_code failed;
  std::filesystem::create_directories(path.parent_path(), failed);
  bool told = false;
  while (true) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) {
      return make_error(Code::kUnavailable, "cannot create the lock file {}: {}", path.string(),
                        failed ? failed.message() : std::strerror(errno));
    }
    FileLock lock(fd);
    while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
      if (errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP) return lock;  // a disk without locks
      if (errno != EWOULDBLOCK && errno != EINTR) {
        return make_error(Code::kUnavailable, "cannot lock {}: {}", path.string(), std::strerror(errno));
      }
      if (config.cancelled != nullptr && config.cancelled->load()) {
        return make_error(Code::kCancelled, "stopped on request");
      }
      if (!told) log_info("waiting for another process that fetches {}", what);
      told = true;
      std::this_thread::sleep_for(kPoll);
    }
    if (still_named(fd, path)) return lock;
  }
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace whippet
