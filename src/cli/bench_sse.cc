#include "cli/bench_sse.h"

namespace whippet {
namespace {

constexpr size_t kLongest = size_t{16} << 20;  // bytes of an event
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kData = "data";

}  // namespace

Status SseReader::feed(std::string_view bytes, const Sink& sink) {
  while (!bytes.empty()) {
    if (after_cr_ && bytes.front() == '\n') bytes.remove_prefix(1);
    after_cr_ = false;
    const size_t end = bytes.find_first_of("\r\n");
    line_ += bytes.substr(0, end);
    if (line_.size() + data_.size() > kLongest)
      return make_error(Code::kResourceExhausted, "an event of the answer is larger than {} MiB",
                        kLongest >> 20);
    if (end == std::string_view::npos) break;
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    end_line(sink);
    line_.clear();
  }
  return {};
}

void SseReader::end_line(const Sink& sink) {
  std::string_view line = line_;
  if (at_begin_ && line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  at_begin_ = false;
  if (line.empty()) {
    if (!data_.empty()) sink(std::string_view(data_).substr(0, data_.size() - 1));
    data_.clear();
    return;
  }
  const size_t colon = line.find(':');
  if (line.substr(0, colon) != kData) return;
  std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  data_ += value;
  data_ += '\n';
}

}  // namespace whippet
