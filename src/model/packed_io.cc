#include "model/packed_io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "base/hash64.h"
#include "base/progress.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;
constexpr unsigned kMaxReaders = 4;  // threads: copying from the page cache is bound by memory
constexpr int kMaxAttempts = 100;
constexpr std::chrono::hours kAbandoned{1};  // a temporary file of that age has no writer

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

bool read_at(int fd, uint64_t at, std::byte* to, size_t size) {
  while (size > 0) {
    const ssize_t got = ::pread(fd, to, size, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    at += static_cast<uint64_t>(got);
    size -= static_cast<size_t>(got);
  }
  return true;
}

bool write_at(int fd, uint64_t at, const std::byte* from, size_t size) {
  while (size > 0) {
    const ssize_t put = ::pwrite(fd, from, size, static_cast<off_t>(at));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    from += put;
    at += static_cast<uint64_t>(put);
    size -= static_cast<size_t>(put);
  }
  return true;
}

Error file_error(const char* what, const fs::path& path) {
  return make_error(Code::kUnavailable, "cannot {} {}: {}", what, path.string(), std::strerror(errno));
}

// A descriptor that the caller closes.
Result<int> open_to_read(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd >= 0) return fd;
  const Code code = errno == ENOENT || errno == ENOTDIR ? Code::kNotFound : Code::kUnavailable;
  return make_error(code, "it cannot be opened: {}", std::strerror(errno));
}

Result<PackedTable> read_table(const File& file) {
  struct stat info = {};
  if (::fstat(file.fd(), &info) != 0 || !S_ISREG(info.st_mode))
    return make_error(Code::kCorrupt, "it is no regular file");
  const auto file_bytes = static_cast<uint64_t>(info.st_size);
  std::vector<std::byte> bytes(kPackedHead);
  if (!read_at(file.fd(), 0, bytes.data(), bytes.size()))
    return make_error(Code::kCorrupt, "it has {} bytes", file_bytes);
  WH_ASSIGN(const uint64_t table_bytes, packed_table_bytes(bytes, file_bytes));
  bytes.resize(kPackedHead + table_bytes);
  if (!read_at(file.fd(), kPackedHead, bytes.data() + kPackedHead, table_bytes))
    return make_error(Code::kCorrupt, "its table cannot be read");
  return decode_packed(bytes, file_bytes);
}

// Piece by piece, each hashed while it is still in the processor's cache.
bool read_storage(const File& file, const PackedEntry& entry, std::byte* to) {
  uint64_t hash = 0;
  for (uint64_t at = 0; at < entry.bytes; at += kPackedPiece) {
    const auto size = static_cast<size_t>(std::min<uint64_t>(kPackedPiece, entry.bytes - at));
    if (!read_at(file.fd(), entry.at + at, to + at, size)) return false;
    hash = hash64({to + at, size}, hash);
  }
  return hash == entry.hash;
}

// The index of the first entry that is damaged, or how many there are.
size_t read_storages(const File& file, const std::vector<PackedEntry>& entries,
                     const std::vector<Buffer>& storages) {
  std::atomic<size_t> next = 0, damaged = entries.size();
  const auto read_some = [&] {
    for (size_t i = next++; i < entries.size() && damaged == entries.size(); i = next++)
      if (!read_storage(file, entries[i], storages[i].as<std::byte>())) damaged = i;
  };
  std::vector<std::thread> readers;
  const unsigned count = std::clamp(std::thread::hardware_concurrency(), 1u, kMaxReaders);
  for (unsigned i = 1; i < count; ++i) readers.emplace_back(read_some);
  read_some();
  for (std::thread& reader : readers) reader.join();
  return damaged;
}

Status check_space(const fs::path& folder, uint64_t bytes, uint64_t keep_free) {
  struct statvfs disk = {};
  if (::statvfs(folder.c_str(), &disk) != 0) return file_error("look at the disk of", folder);
  const uint64_t free_bytes = static_cast<uint64_t>(disk.f_bavail) * static_cast<uint64_t>(disk.f_frsize);
  if (free_bytes >= bytes && free_bytes - bytes >= keep_free) return {};
  return make_error(Code::kResourceExhausted,
                    "the disk of {} has {} free, and {} with {} to spare are needed", folder.string(),
                    format_bytes(free_bytes), format_bytes(bytes), format_bytes(keep_free));
}

// What writers left that were killed.
void remove_abandoned(const fs::path& folder) {
  std::error_code problem;
  const auto now = fs::file_time_type::clock::now();
  for (fs::directory_iterator it(folder, problem), end; !problem && it != end; it.increment(problem)) {
    std::error_code ignored;
    const bool temporary = it->path().filename().string().find(".packed.part-") != std::string::npos;
    if (temporary && now - it->last_write_time(ignored) > kAbandoned && !ignored)
      fs::remove(it->path(), ignored);
  }
}

Status write_content(const File& file, const fs::path& path, PackedTable& table,
                     const std::vector<const LinearWeight*>& weights) {
  for (size_t i = 0; i < weights.size(); ++i) {
    PackedEntry& entry = table.entries[i];
    const auto* storage = weights[i]->storage.as<std::byte>();
    for (uint64_t at = 0; at < entry.bytes; at += kPackedPiece) {
      const auto size = static_cast<size_t>(std::min<uint64_t>(kPackedPiece, entry.bytes - at));
      entry.hash = hash64({storage + at, size}, entry.hash);
      if (!write_at(file.fd(), entry.at + at, storage + at, size)) return file_error("write", path);
    }
  }
  const std::string front = encode_packed(table);
  if (!write_at(file.fd(), 0, reinterpret_cast<const std::byte*>(front.data()), front.size()))
    return file_error("write", path);
  return {};
}

}  // namespace

Result<PackedTable> read_packed_table(const fs::path& path) {
  WH_ASSIGN(const int fd, open_to_read(path));
  const File file(fd);
  return read_table(file);
}

Result<PackedWeights> read_packed(const fs::path& path, const std::string& key) {
  WH_ASSIGN(const int fd, open_to_read(path));
  const File file(fd);
  WH_ASSIGN(const PackedTable table, read_table(file));
  if (table.key != key)
    return make_error(Code::kNotFound, "it is of another state of the model, or of another Whippet");
  const uint64_t memory =
      static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  if (table.file_bytes > memory) return make_error(Code::kCorrupt, "it is larger than this machine's memory");
  std::vector<Buffer> storages;
  for (const PackedEntry& entry : table.entries) {
    if (entry.bytes == 0) return make_error(Code::kCorrupt, "weight {} is empty", entry.name);
    storages.push_back(Buffer::host(entry.bytes));
  }
  const size_t damaged = read_storages(file, table.entries, storages);
  if (damaged < table.entries.size())
    return make_error(Code::kCorrupt, "weight {} does not have the checksum that the file names",
                      table.entries[damaged].name);
  PackedWeights weights;
  for (size_t i = 0; i < storages.size(); ++i)
    weights.insert_or_assign(table.entries[i].name, with_storage(table.entries[i], std::move(storages[i])));
  return weights;
}

Status write_packed(const fs::path& path, PackedTable table, const std::vector<std::string>& names,
                    const std::vector<const LinearWeight*>& weights, uint64_t keep_free) {
  WH_CHECK_EQ(names.size(), weights.size());
  for (size_t i = 0; i < weights.size(); ++i) table.entries.push_back(packed_entry(names[i], *weights[i]));
  place_storages(table);
  std::error_code problem;
  fs::create_directories(path.parent_path(), problem);
  if (problem)
    return make_error(Code::kUnavailable, "cannot make the folder {}: {}", path.parent_path().string(),
                      problem.message());
  remove_abandoned(path.parent_path());
  WH_TRY(check_space(path.parent_path(), table.file_bytes, keep_free));
  int fd = -1;
  std::string temporary;
  for (int attempt = 0; fd < 0 && attempt < kMaxAttempts; ++attempt) {
    temporary = fmt::format("{}.part-{}-{}", path.string(), ::getpid(), attempt);
    fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0 && errno != EEXIST) break;
  }
  const File file(fd);
  if (fd < 0) return file_error("create", temporary);
  Status written = write_content(file, temporary, table, weights);
  if (written.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) written = file_error("name", path);
  if (!written.ok()) ::unlink(temporary.c_str());
  return written;
}

}  // namespace whippet
