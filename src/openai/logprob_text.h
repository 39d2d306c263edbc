// Log-probabilities as the protocol writes them, piece by piece, so that a stream's pieces put together are
// what the whole answer has. Internal to openai.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "openai/api.h"

namespace whippet::openai {

// How tokens are named: by their text; bytes that are no text as "bytes:\xe4\xbd"; or all as "token_id:5".
struct TokenNames {
  const Context* context = nullptr;
  bool as_ids = false;

  std::string bytes(int32_t id) const;
  void append_name(std::string& out, int32_t id, std::string_view bytes) const;  // a JSON string
  bool is_special(int32_t id) const;
};

// Of a chat: appends one object a token, commas between and before where `items` has some already.
void append_chat_logprobs(std::string& items, const TokenNames& names,
                          const std::vector<TokenLogprob>& tokens);

// vLLM's prompt_logprobs: [null, {"id": {"logprob", "rank", "decoded_token"}, ...}, ...].
void append_prompt_logprobs(std::string& out, const TokenNames& names,
                            const std::vector<TokenLogprob>& tokens);

// Of a completion: four lists side by side.
class CompletionLogprobs {
 public:
  // The tokens of a prompt that is echoed as `text`; `logprobs` is of all but the first.
  void add_prompt(const TokenNames& names, const std::vector<int32_t>& ids,
                  const std::vector<TokenLogprob>& logprobs, std::string_view text);
  // hides_special: special tokens are not in the text.
  void add(const TokenNames& names, const std::vector<TokenLogprob>& tokens, bool hides_special);

  void append(std::string& out) const;  // {"text_offset": [...], ...}
  void clear();                         // the lists; offsets go on

 private:
  void add_token(const TokenNames& names, int32_t id, std::string_view bytes, const TokenLogprob* logprob);

  std::string tokens_, values_, top_, offsets_;
  int64_t characters_ = 0;  // of the text so far
};

}  // namespace whippet::openai
