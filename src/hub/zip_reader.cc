#include "hub/zip_reader.h"

#include <minizip/unzip.h>

#include <array>
#include <set>

#include "hub/model_name.h"

namespace whippet {
namespace {

constexpr uint64_t kMaxEntries = 100'000;
constexpr uint64_t kMaxRatio = 1032;  // of deflate: one bit cannot say more
constexpr uLong kDeflated = 8;
constexpr uLong kEncrypted = 1;
constexpr size_t kPiece = 256u << 10;

bool is_link(const unz_file_info64& info) {
  const bool unix_made = info.version >> 8 == 3;
  return unix_made && (info.external_fa >> 16 & 0170000) == 0120000;
}

}  // namespace

ZipReader::ZipReader(void* file, std::string path)
    : file_(file, [](void* open_file) { unzClose(open_file); }), path_(std::move(path)) {}

Result<ZipReader> ZipReader::open(const std::filesystem::path& path) {
  std::error_code failed;
  if (!std::filesystem::is_regular_file(path, failed)) {
    return make_error(Code::kNotFound, "there is no file {}", path.string());
  }
  void* file = unzOpen64(path.c_str());
  if (file == nullptr) {
    return make_error(Code::kCorrupt, "{} is not a wheel: it is no zip archive, or is cut short",
                      path.string());
  }
  ZipReader reader(file, path.string());
  WH_TRY(reader.list());
  return reader;
}

Status ZipReader::list() {
  std::set<std::string> seen;
  unz_global_info64 global;
  if (unzGetGlobalInfo64(file_.get(), &global) != UNZ_OK || global.number_entry > kMaxEntries) {
    return make_error(Code::kCorrupt, "{}: the archive's directory is damaged or too long", path_);
  }
  int state = global.number_entry == 0 ? UNZ_END_OF_LIST_OF_FILE : unzGoToFirstFile(file_.get());
  for (; state == UNZ_OK; state = unzGoToNextFile(file_.get())) {
    std::array<char, 1100> buffer{};
    unz_file_info64 info;
    if (unzGetCurrentFileInfo64(file_.get(), &info, buffer.data(), buffer.size() - 1, nullptr, 0, nullptr,
                                0) != UNZ_OK) {
      return make_error(Code::kCorrupt, "{}: the archive's directory is damaged", path_);
    }
    const std::string name = buffer.data();
    if (name.size() != info.size_filename ||
        !is_safe_relative_path(name.substr(0, name.size() - name.ends_with('/')))) {
      return make_error(Code::kCorrupt, "{}: the archive names a file outside its folder: '{}'", path_,
                        name.substr(0, 200));
    }
    if (is_link(info)) return make_error(Code::kCorrupt, "{}: '{}' is a link: refused", path_, name);
    if (!seen.insert(name).second) return make_error(Code::kCorrupt, "{}: '{}' is there twice", path_, name);
    if (info.uncompressed_size / kMaxRatio > info.compressed_size) {
      return make_error(Code::kCorrupt, "{}: '{}' claims {} bytes out of {} packed ones", path_, name,
                        info.uncompressed_size, info.compressed_size);
    }
    if ((info.compression_method != 0 && info.compression_method != kDeflated) ||
        (info.flag & kEncrypted) != 0) {
      return make_error(Code::kUnsupported, "{}: '{}' is encrypted or packed in an unknown way", path_, name);
    }
    unz64_file_pos place;
    if (unzGetFilePos64(file_.get(), &place) != UNZ_OK) {
      return make_error(Code::kCorrupt, "{}: the archive's directory is damaged", path_);
    }
    if (name.ends_with('/')) continue;
    entries_.push_back({name, info.uncompressed_size, place.pos_in_zip_directory, place.num_of_file});
  }
  if (state == UNZ_END_OF_LIST_OF_FILE) return {};
  return make_error(Code::kCorrupt, "{}: the archive's directory is damaged", path_);
}

Status ZipReader::read(const ZipEntry& entry, const std::function<Status(std::string_view)>& sink) {
  unz64_file_pos place{entry.at, entry.index};
  const auto damaged = [&](const char* how) {
    return make_error(Code::kCorrupt, "{}: '{}' is damaged ({})", path_, entry.name, how);
  };
  if (unzGoToFilePos64(file_.get(), &place) != UNZ_OK || unzOpenCurrentFile(file_.get()) != UNZ_OK) {
    return damaged("its header");
  }
  std::vector<char> buffer(kPiece);
  uint64_t done = 0;
  Status status;
  while (true) {
    const int count = unzReadCurrentFile(file_.get(), buffer.data(), static_cast<unsigned>(buffer.size()));
    if (count < 0) status = damaged("its content");
    if (count <= 0) break;
    done += static_cast<uint64_t>(count);
    status = done > entry.size ? damaged("longer than declared")
                               : sink({buffer.data(), static_cast<size_t>(count)});
    if (!status.ok()) break;
  }
  const int closed = unzCloseCurrentFile(file_.get());
  WH_TRY(status);
  if (done != entry.size) return damaged("shorter than declared");
  if (closed != UNZ_OK) return damaged("its CRC");
  return {};
}

}  // namespace whippet
