// One file from a URL to disk: resumable, checked, atomic. Whoever sees the target's name sees the whole
// file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/error.h"
#include "hub/environment.h"
#include "hub/http.h"

namespace whippet {

struct Download {
  std::string url;
  std::string secret;            // see HttpRequest
  std::filesystem::path target;  // "<target>.incomplete" is written first and kept for a later resume
  std::string name;              // for messages
  std::string label;             // of the progress bar; empty: the name
  std::optional<uint64_t> size;  // expected
  std::string sha256;            // expected, hex; empty where unknown
  std::string git_sha1;          // expected git blob name, hex; needs size; empty where unknown
  // Turns a status other than 200 and 206 into the hub's own message.
  std::function<Error(const HttpResponse&)> explain;
};

// The caller holds the lock of the target. Errors: those of `explain`, kUnavailable after the last retry,
// kCorrupt (size or checksum; the partial file is removed), kResourceExhausted, kCancelled.
Status download_file(HttpClient& client, const Download& download, const HubConfig& config);

}  // namespace whippet
