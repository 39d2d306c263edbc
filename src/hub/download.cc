#include "hub/download.h"

#include <algorithm>
#include <charconv>
#include <memory>

#include "base/progress.h"
#include "hub/digest.h"
#include "hub/output_file.h"
#include "hub/retry.h"
#include "hub/url.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxUnsized = 64u << 20;   // of a file whose length nobody tells
constexpr uint64_t kRealProgress = 1u << 20;  // of bytes, that make a fault worth a new count of attempts

std::optional<uint64_t> to_number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "bytes 100-199/200": the first byte and the total, where they are told.
struct ContentRange {
  std::optional<uint64_t> first, total;
};
ContentRange parse_content_range(std::string_view text) {
  ContentRange range;
  if (!text.starts_with("bytes ")) return range;
  text.remove_prefix(6);
  const size_t dash = text.find('-');
  const size_t slash = text.find('/');
  if (dash != std::string_view::npos) range.first = to_number(text.substr(0, dash));
  if (slash != std::string_view::npos) range.total = to_number(text.substr(slash + 1));
  return range;
}

// The state of one file across the attempts to fetch it.
class Fetch {
 public:
  Fetch(HttpClient& client, const Download& download, const HubConfig& config, OutputFile file)
      : client_(client),
        download_(download),
        config_(config),
        file_(std::move(file)),
        size_(download.size),
        progress_(download.label.empty() ? download.name : download.label, download.size.value_or(0),
                  Progress::Unit::kBytes) {}

  Status run();

 private:
  bool is_git() const { return !download_.git_sha1.empty() && size_.has_value(); }
  bool has_checksum() const { return is_git() || !download_.sha256.empty(); }
  void new_digest();
  Status restart();
  Status resume_from_disk();
  Status begin_body(const HttpResponse& head);
  Status write(const HttpResponse& head, std::string_view piece);
  Result<HttpResponse> attempt();
  Status transfer();
  // The fault of what has been received in full, or an empty string.
  std::string mismatch();
  Error corrupt(const std::string& why);

  HttpClient& client_;
  const Download& download_;
  const HubConfig& config_;
  OutputFile file_;
  std::optional<uint64_t> size_;
  Progress progress_;
  std::unique_ptr<Digest> digest_;
  uint64_t done_ = 0;     // bytes on disk and in the digest
  uint64_t best_ = 0;     // the most that done_ has been: progress is counted once
  bool in_body_ = false;  // of the current attempt
  std::string etag_;      // of the answer that done_ came from, when it is strong
};

void Fetch::new_digest() {
  digest_.reset();
  if (!has_checksum()) return;
  digest_ = std::make_unique<Digest>(is_git() ? Digest::git_blob(*size_) : Digest::sha256());
}

Status Fetch::restart() {
  WH_TRY(file_.truncate(0));
  done_ = 0;
  etag_.clear();
  new_digest();
  progress_.set(0);
  return {};
}

// What an earlier run left is trusted only where a checksum will judge the whole.
Status Fetch::resume_from_disk() {
  const uint64_t there = file_.size();
  const bool usable = there > 0 && has_checksum() && (!size_ || there <= *size_);
  if (!usable) return restart();
  new_digest();
  if (!update_from_file(*digest_, fs::path(download_.target) += ".incomplete", there).ok()) return restart();
  done_ = there;
  progress_.set(done_);
  return {};
}

// Judges the head of a 200 or 206 before any byte of it is written.
Status Fetch::begin_body(const HttpResponse& head) {
  in_body_ = true;
  const ContentRange range = parse_content_range(head.header("content-range"));
  if (head.status == 200 && done_ > 0) WH_TRY(restart());  // a server without ranges sends it all again
  if (head.status == 206 && range.first.value_or(done_) != done_) {
    return corrupt(fmt::format("asked for bytes from {}, the server sends from {}", done_, *range.first));
  }
  const std::optional<uint64_t> length =
      head.status == 206 ? range.total : to_number(head.header("content-length"));
  if (length && size_ && *length != *size_) {
    return corrupt(fmt::format("the server has {} bytes, {} were announced", *length, *size_));
  }
  const std::string etag = head.header("etag");
  etag_ = etag.starts_with('"') ? etag : "";
  if (length && !size_) {
    size_ = length;
    progress_.set_total(*length);
    if (done_ == 0) new_digest();  // a git blob's begins with its size
  }
  if (!size_ && !has_checksum() && download_.git_sha1.empty()) {
    return corrupt(
        "it comes without a size and without a checksum, so nobody could tell whether it is whole");
  }
  if (size_)
    return check_free_space(download_.target.parent_path(), *size_ - std::min(done_, *size_), config_);
  return {};
}

Status Fetch::write(const HttpResponse& head, std::string_view piece) {
  if (!in_body_) WH_TRY(begin_body(head));
  if (done_ + piece.size() > size_.value_or(kMaxUnsized)) {
    return corrupt(size_ ? fmt::format("the server sends more than the {} bytes announced", *size_)
                         : fmt::format("the server announces no size and sends more than {}",
                                       format_bytes(kMaxUnsized)));
  }
  WH_TRY(file_.write_at(done_, piece));
  if (digest_) digest_->update(piece);
  done_ += piece.size();
  progress_.set(done_);
  return {};
}

Result<HttpResponse> Fetch::attempt() {
  in_body_ = false;
  HttpRequest request;
  request.url = download_.url;
  request.secret = download_.secret;
  request.range_from = done_;
  if (!has_checksum())
    request.if_range = etag_;  // else it only costs resumes where mirrors disagree on ETags
  WH_ASSIGN(HttpResponse response,
            client_.send(request, [this](const HttpResponse& head, std::string_view piece) {
              return write(head, piece);
            }));
  const bool good = response.status == 200 || response.status == 206;
  if (good && !in_body_) WH_TRY(begin_body(response));  // an empty body
  if (good && size_ && done_ < *size_) {
    return make_error(Code::kUnavailable, "{}: the connection ended after {} of {} bytes", download_.name,
                      done_, *size_);
  }
  return response;
}

// Until all bytes are there, or an error that retries do not heal.
Status Fetch::transfer() {
  Retry retry(config_);
  while (!size_ || done_ < *size_ || *size_ == 0) {
    const Result<HttpResponse> outcome = attempt();
    if (outcome.ok() && (outcome->status == 200 || outcome->status == 206)) return {};
    if (outcome.ok() && outcome->status == 416 && done_ > 0) {  // what is there is longer than the file
      WH_TRY(restart());
      if (retry.again(outcome, false)) continue;
    }
    const bool progressed = done_ > best_ + kRealProgress;
    best_ = std::max(best_, done_);
    if (Retry::worth(outcome) && retry.again(outcome, progressed)) continue;
    if (!outcome.ok()) return outcome.error();
    return download_.explain
               ? download_.explain(*outcome)
               : make_error(Code::kUnavailable, "{} answers {}", display_url(outcome->url), outcome->status);
  }
  return {};
}

std::string Fetch::mismatch() {
  if (!size_ && !download_.git_sha1.empty()) {  // its checksum begins with a size that is known only now
    size_ = done_;
    new_digest();
    if (!update_from_file(*digest_, fs::path(download_.target) += ".incomplete", done_).ok()) digest_.reset();
    if (!digest_) return "it cannot be read back";
  }
  if (!digest_) return "";
  const std::string& expected = is_git() ? download_.git_sha1 : download_.sha256;
  const std::string found = std::move(*digest_).hex();
  digest_.reset();
  if (found == expected) return "";
  return fmt::format("its {} is {}, expected {}", is_git() ? "git SHA-1" : "SHA-256", found, expected);
}

Error Fetch::corrupt(const std::string& why) {
  std::error_code ignored;
  fs::remove(fs::path(download_.target) += ".incomplete", ignored);
  return make_error(Code::kCorrupt, "{} from {} is not what the hub announced: {}. It was removed; try again",
                    download_.name, display_url(download_.url), why);
}

Status Fetch::run() {
  WH_TRY(resume_from_disk());
  if (size_) WH_TRY(check_free_space(download_.target.parent_path(), *size_ - done_, config_));
  const bool resumed = done_ > 0;
  best_ = done_;
  WH_TRY(transfer());
  std::string fault = mismatch();
  if (!fault.empty() && resumed) {  // the old part may have been the bad one
    WH_TRY(restart());
    WH_TRY(transfer());
    fault = mismatch();
  }
  if (!fault.empty()) return corrupt(fault);
  progress_.finish();
  return file_.commit(download_.target);
}

}  // namespace

Status download_file(HttpClient& client, const Download& download, const HubConfig& config) {
  WH_ASSIGN(OutputFile file, OutputFile::open(fs::path(download.target) += ".incomplete"));
  Fetch fetch(client, download, config, std::move(file));
  return fetch.run();
}

}  // namespace whippet
