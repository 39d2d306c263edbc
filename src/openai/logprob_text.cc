#include "openai/logprob_text.h"

#include <algorithm>

#include "openai/json_text.h"
#include "text/utf8.h"

namespace whippet::openai {
namespace {

bool is_utf8(std::string_view text) {
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    const Utf8Character c = decode_utf8(at, end);
    if (c.code == kInvalidCharacter) return false;
    at += c.size;
  }
  return true;
}

int64_t count_characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; });
}

void separate(std::string& items) {
  if (!items.empty()) items += ',';
}

void append_bytes(std::string& out, std::string_view bytes) {
  out += '[';
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i > 0) out += ',';
    append_number(out, static_cast<unsigned char>(bytes[i]));
  }
  out += ']';
}

// {"token", "logprob", "bytes"}, open at its end.
void append_token_object(std::string& out, const TokenNames& names, int32_t id, float logprob) {
  const std::string bytes = names.bytes(id);
  out += "{\"token\":";
  names.append_name(out, id, bytes);
  out += ",\"logprob\":";
  append_logprob(out, logprob);
  out += ",\"bytes\":";
  append_bytes(out, bytes);
}

// Whether the tokens at the top have this one, of which they need not.
bool has_token(const TokenLogprob& logprob) {
  return std::any_of(logprob.top.begin(), logprob.top.end(),
                     [&](const auto& entry) { return entry.first == logprob.token_id; });
}

void append_prompt_entry(std::string& out, const TokenNames& names, int32_t id, float logprob, int64_t rank) {
  out += '"';
  append_number(out, id);
  out += "\":{\"logprob\":";
  append_logprob(out, logprob);
  out += ",\"rank\":";
  append_number(out, rank);
  out += ",\"decoded_token\":";
  names.append_name(out, id, names.bytes(id));
  out += '}';
}

}  // namespace

std::string TokenNames::bytes(int32_t id) const { return context->token_bytes(id); }

bool TokenNames::is_special(int32_t id) const { return context->decode({id}, true).empty(); }

void TokenNames::append_name(std::string& out, int32_t id, std::string_view bytes) const {
  constexpr char kHex[] = "0123456789abcdef";
  if (as_ids) {
    out += "\"token_id:";
    append_number(out, id);
    out += '"';
    return;
  }
  if (is_utf8(bytes)) return append_json_string(out, bytes);
  out += "\"bytes:";
  for (const char byte : bytes) {
    out += "\\\\x";
    out += kHex[static_cast<unsigned char>(byte) >> 4];
    out += kHex[static_cast<unsigned char>(byte) & 15];
  }
  out += '"';
}

void append_chat_logprobs(std::string& items, const TokenNames& names,
                          const std::vector<TokenLogprob>& tokens) {
  for (const TokenLogprob& token : tokens) {
    separate(items);
    append_token_object(items, names, token.token_id, token.logprob);
    items += ",\"top_logprobs\":[";
    for (size_t i = 0; i < token.top.size(); ++i) {
      if (i > 0) items += ',';
      append_token_object(items, names, token.top[i].first, token.top[i].second);
      items += '}';
    }
    items += "]}";
  }
}

void append_prompt_logprobs(std::string& out, const TokenNames& names,
                            const std::vector<TokenLogprob>& tokens) {
  out += "[null";
  for (const TokenLogprob& token : tokens) {
    out += ",{";
    if (!has_token(token)) append_prompt_entry(out, names, token.token_id, token.logprob, token.rank);
    for (size_t i = 0; i < token.top.size(); ++i) {
      if (i > 0 || !has_token(token)) out += ',';
      append_prompt_entry(out, names, token.top[i].first, token.top[i].second, static_cast<int64_t>(i) + 1);
    }
    out += '}';
  }
  out += ']';
}

void CompletionLogprobs::add_token(const TokenNames& names, int32_t id, std::string_view bytes,
                                   const TokenLogprob* logprob) {
  for (std::string* list : {&tokens_, &values_, &top_, &offsets_}) separate(*list);
  names.append_name(tokens_, id, bytes);
  append_number(offsets_, characters_);
  if (logprob == nullptr) {
    values_ += "null";
    top_ += "null";
    return;
  }
  append_logprob(values_, logprob->logprob);
  top_ += '{';
  const auto append = [&](int32_t other, float value) {
    if (top_.back() != '{') top_ += ',';
    names.append_name(top_, other, names.bytes(other));
    top_ += ':';
    append_logprob(top_, value);
  };
  for (const auto& [other, value] : logprob->top) append(other, value);
  if (!has_token(*logprob)) append(id, logprob->logprob);
  top_ += '}';
}

void CompletionLogprobs::add_prompt(const TokenNames& names, const std::vector<int32_t>& ids,
                                    const std::vector<TokenLogprob>& logprobs, std::string_view text) {
  std::string_view rest = text;
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::string bytes = names.bytes(ids[i]);
    add_token(names, ids[i], bytes, i > 0 && i <= logprobs.size() ? &logprobs[i - 1] : nullptr);
    // A BOS that was added is not in the text that is echoed.
    if (!rest.starts_with(bytes) && names.is_special(ids[i])) continue;
    characters_ += count_characters(bytes);
    rest.remove_prefix(std::min(rest.size(), bytes.size()));
  }
  characters_ = count_characters(text);
}

void CompletionLogprobs::add(const TokenNames& names, const std::vector<TokenLogprob>& tokens,
                             bool hides_special) {
  for (const TokenLogprob& token : tokens) {
    const std::string bytes = names.bytes(token.token_id);
    add_token(names, token.token_id, bytes, &token);
    if (!hides_special || !names.is_special(token.token_id)) characters_ += count_characters(bytes);
  }
}

void CompletionLogprobs::append(std::string& out) const {
  out += "{\"text_offset\":[";
  out += offsets_;
  out += "],\"token_logprobs\":[";
  out += values_;
  out += "],\"tokens\":[";
  out += tokens_;
  out += "],\"top_logprobs\":[";
  out += top_;
  out += "]}";
}

void CompletionLogprobs::clear() {
  for (std::string* list : {&tokens_, &values_, &top_, &offsets_}) list->clear();
}

}  // namespace whippet::openai
