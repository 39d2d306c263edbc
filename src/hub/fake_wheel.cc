#include "hub/fake_wheel.h"

#include <fmt/format.h>
#include <minizip/zip.h>
#include <zlib.h>

#include <algorithm>

#include "base/check.h"
#include "hub/digest.h"
#include "hub/url.h"

namespace whippet {
namespace {

constexpr unsigned long kUnix = 3u << 8;
constexpr unsigned long kLinkMode = 0120777;
constexpr unsigned long kFileMode = 0100644;

std::string record_line(const FakeZipEntry& file) {
  Digest digest = Digest::sha256();
  digest.update(file.content);
  std::string hash = base64(std::move(digest).bytes());
  std::replace(hash.begin(), hash.end(), '+', '-');
  std::replace(hash.begin(), hash.end(), '/', '_');
  std::erase(hash, '=');
  return fmt::format("{},sha256={},{}\n", file.name, hash, file.content.size());
}

}  // namespace

void write_zip(const std::filesystem::path& path, const std::vector<FakeZipEntry>& entries) {
  std::filesystem::create_directories(path.parent_path());
  zipFile zip = zipOpen64(path.c_str(), APPEND_STATUS_CREATE);
  WH_CHECK(zip != nullptr);
  for (const FakeZipEntry& entry : entries) {
    zip_fileinfo info{};
    info.external_fa = (entry.link ? kLinkMode : kFileMode) << 16;
    WH_CHECK(zipOpenNewFileInZip4_64(zip, entry.name.c_str(), &info, nullptr, 0, nullptr, 0, nullptr,
                                     Z_DEFLATED, Z_DEFAULT_COMPRESSION, 0, -MAX_WBITS, DEF_MEM_LEVEL,
                                     Z_DEFAULT_STRATEGY, nullptr, 0, kUnix, 0, 0) == ZIP_OK);
    WH_CHECK(zipWriteInFileInZip(zip, entry.content.data(), static_cast<unsigned>(entry.content.size())) ==
             ZIP_OK);
    WH_CHECK(zipCloseFileInZip(zip) == ZIP_OK);
  }
  WH_CHECK(zipClose(zip, nullptr) == ZIP_OK);
}

std::filesystem::path write_wheel(const std::filesystem::path& folder, const std::string& package,
                                  const std::string& version, const std::vector<FakeZipEntry>& files) {
  std::string module = package;
  std::replace(module.begin(), module.end(), '-', '_');
  const std::string info = fmt::format("{}-{}.dist-info/", module, version);
  std::vector<FakeZipEntry> all = files;
  all.push_back({info + "METADATA", "Metadata-Version: 2.1\nName: x\nLicense: Apache-2.0\n\nLicense: no\n"});
  std::string record;
  for (const FakeZipEntry& file : all) record += record_line(file);
  all.push_back({info + "RECORD", record + info + "RECORD,,\n"});
  const auto path = folder / fmt::format("{}-{}-py3-none-any.whl", module, version);
  write_zip(path, all);
  return path;
}

}  // namespace whippet
