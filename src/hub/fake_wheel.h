// For tests: zip archives and wheels made from a list of names and contents, honest or not.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace whippet {

struct FakeZipEntry {
  std::string name;
  std::string content;
  bool link = false;  // marked as a symbolic link
};

// Writes a zip archive of deflated entries.
void write_zip(const std::filesystem::path& path, const std::vector<FakeZipEntry>& entries);

// Writes the wheel "package-version-py3-none-any.whl" with these files and a true RECORD into `folder`.
std::filesystem::path write_wheel(const std::filesystem::path& folder, const std::string& package,
                                  const std::string& version, const std::vector<FakeZipEntry>& files);

}  // namespace whippet
