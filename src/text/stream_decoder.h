// Turns a stream of tokens into a stream of text that is always whole UTF-8 characters: half a character is
// held back, a whole one never. One per sequence, one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace whippet {

class StreamDecoder {
 public:
  // The tokenizer must outlive the decoder. continues_text: the tokens go on with a text that stands before
  // them, so the space at their beginning belongs to the text even where decode() would drop it.
  // kept_special: control tokens that are not skipped.
  StreamDecoder(const Tokenizer& tokenizer, bool skip_special_tokens, bool continues_text = false,
                std::vector<int32_t> kept_special = {});

  // The text that this token completes; may be empty. Bytes that can no longer become a character are U+FFFD.
  std::string push(int32_t token);
  // What is still held back, as U+FFFD; called once at the end.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  bool skip_special_tokens_;
  std::vector<int32_t> kept_special_;
  bool drop_space_;      // the next byte is the first of the text, and a space there does not count
  std::string pending_;  // at most 3 bytes: a valid beginning of a character
};

}  // namespace whippet
