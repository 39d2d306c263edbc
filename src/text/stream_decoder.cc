#include "text/stream_decoder.h"

#include <algorithm>
#include <utility>

#include "text/utf8.h"

namespace whippet {

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, bool skip_special_tokens, bool continues_text,
                             std::vector<int32_t> kept_special)
    : tokenizer_(&tokenizer),
      skip_special_tokens_(skip_special_tokens),
      kept_special_(std::move(kept_special)),
      drop_space_(tokenizer.drops_first_space() && !continues_text) {}

std::string StreamDecoder::push(int32_t token) {
  std::string text;
  if (skip_special_tokens_ && tokenizer_->is_special(token) &&
      std::find(kept_special_.begin(), kept_special_.end(), token) == kept_special_.end())
    return text;
  std::string_view bytes = tokenizer_->token_bytes(token);
  if (bytes.empty()) return text;
  if (drop_space_ && bytes[0] == ' ') bytes.remove_prefix(1);
  drop_space_ = false;
  pending_ += bytes;
  const size_t whole = pending_.size() - unfinished_utf8_suffix(pending_);
  append_repaired_utf8(text, std::string_view(pending_).substr(0, whole));
  pending_.erase(0, whole);
  return text;
}

std::string StreamDecoder::finish() {
  std::string text;
  append_repaired_utf8(text, pending_);
  pending_.clear();
  return text;
}

}  // namespace whippet
