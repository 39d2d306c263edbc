// The small JSON files beside a vocabulary, and what all readers need to place tokens by id.
#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "text/tokenizer_json.h"
#include "text/utf8.h"
#include "text/vocabulary_reader.h"

namespace whippet {
namespace {

using nlohmann::json;

constexpr const char* kConfigFile = "tokenizer_config.json";

// Finds ids by content: added tokens first, then the vocabulary's spellings.
std::optional<int32_t> find_content(const Vocabulary& vocabulary, const std::string& content) {
  for (const AddedToken& token : vocabulary.added) {
    if (token.content == content) return token.id;
  }
  const auto found = std::find(vocabulary.tokens.begin(), vocabulary.tokens.end(), content);
  if (found == vocabulary.tokens.end() || content.empty()) return std::nullopt;
  return static_cast<int32_t>(found - vocabulary.tokens.begin());
}

// A token is named by a string, or by an object with a "content".
Result<std::string> token_name(const json& object, const char* key) {
  const json* member = find_member(object, key);
  if (member != nullptr && member->is_object()) return string_member(*member, "content");
  return string_member(object, key);
}

void mark_special(Vocabulary& vocabulary, const std::string& content) {
  const std::optional<int32_t> id = find_content(vocabulary, content);
  if (!id) return;
  for (AddedToken& token : vocabulary.added) {
    if (token.id != *id) continue;
    token.special = true;
    return;
  }
  vocabulary.added.push_back({.id = *id, .content = content, .special = true});
}

// bos_token and its kin, in either file. A name that is no token (Qwen's bos_token may be one) changes
// nothing.
Status apply_named_tokens(Vocabulary& vocabulary, const json& object, bool with_unknown) {
  const std::pair<const char*, std::optional<int32_t>*> names[] = {{"bos_token", &vocabulary.bos_id},
                                                                   {"eos_token", &vocabulary.eos_id},
                                                                   {"pad_token", &vocabulary.pad_id},
                                                                   {"unk_token", &vocabulary.unknown_id}};
  for (const auto& [key, id] : names) {
    WH_ASSIGN(const std::string name, token_name(object, key));
    if (name.empty()) continue;
    mark_special(vocabulary, name);
    const bool is_unknown = id == &vocabulary.unknown_id;
    if (const auto found = find_content(vocabulary, name); found && (!is_unknown || with_unknown))
      *id = found;
  }
  const json* list = find_member(object, "additional_special_tokens");
  if (list == nullptr) return {};
  if (!list->is_array()) return make_error(Code::kCorrupt, "additional_special_tokens is no list");
  for (const json& entry : *list) {
    if (entry.is_string()) mark_special(vocabulary, entry.get<std::string>());
    if (entry.is_object()) {
      WH_ASSIGN(const std::string content, string_member(entry, "content"));
      mark_special(vocabulary, content);
    }
  }
  return {};
}

Status apply_tokenizer_class(Vocabulary& vocabulary, const json& config) {
  WH_ASSIGN(const std::string name, string_member(config, "tokenizer_class"));
  if (name == "Qwen2Tokenizer" || name == "Qwen2TokenizerFast") {
    vocabulary.pre_tokenizer = PreTokenizer::kQwen2;
    vocabulary.nfc = true;
  } else if (name.empty() || name == "GPT2Tokenizer" || name == "GPT2TokenizerFast") {
    WH_ASSIGN(vocabulary.add_prefix_space, bool_member(config, "add_prefix_space", false));
  } else {
    return make_error(Code::kUnsupported,
                      "{}: vocab.json and merges.txt of a {} are not supported; a tokenizer.json would be",
                      kConfigFile, quote_text(name));
  }
  return {};
}

Status apply_added_tokens_decoder(Vocabulary& vocabulary, const json& config) {
  const json* decoder = find_member(config, "added_tokens_decoder");
  if (decoder == nullptr) return {};
  if (!decoder->is_object())
    return make_error(Code::kCorrupt, "{}: added_tokens_decoder is no object", kConfigFile);
  std::unordered_map<int32_t, size_t> place_of;
  for (size_t i = 0; i < vocabulary.added.size(); ++i) place_of[vocabulary.added[i].id] = i;
  for (const auto& [key, entry] : decoder->items()) {
    int64_t id = -1;
    const auto [rest, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || rest != key.data() + key.size()) {
      return make_error(Code::kCorrupt, "{}: added token id {} is no number", kConfigFile, quote_text(key));
    }
    WH_ASSIGN(AddedToken token, parse_added_token(entry, id));
    const auto [place, is_new] = place_of.try_emplace(token.id, vocabulary.added.size());
    if (is_new) {
      vocabulary.added.push_back(std::move(token));
    } else {
      vocabulary.added[place->second] = std::move(token);
    }
  }
  return {};
}

}  // namespace

Status apply_tokenizer_config(Vocabulary& vocabulary, VocabularySource source, std::string_view text) {
  WH_ASSIGN(const json config, parse_json_document(text, kConfigFile));
  if (source == VocabularySource::kVocabAndMerges) WH_TRY(apply_tokenizer_class(vocabulary, config));
  WH_TRY(apply_added_tokens_decoder(vocabulary, config));
  // Byte-level models have every byte; their unk_token is a formality.
  WH_TRY(apply_named_tokens(vocabulary, config, source == VocabularySource::kSentencePieceModel));
  WH_ASSIGN(vocabulary.add_bos, bool_member(config, "add_bos_token", vocabulary.add_bos));
  WH_ASSIGN(vocabulary.add_eos, bool_member(config, "add_eos_token", vocabulary.add_eos));
  if (source == VocabularySource::kSentencePieceModel) {
    WH_ASSIGN(vocabulary.add_prefix_space,
              bool_member(config, "add_prefix_space", vocabulary.add_prefix_space));
    WH_ASSIGN(const bool legacy, bool_member(config, "legacy", true));
    vocabulary.prefix_only_at_start = !legacy;
  }
  return {};
}

Status apply_added_tokens(Vocabulary& vocabulary, std::string_view text) {
  WH_ASSIGN(const TokenizerDocument document, parse_vocab_document(text, "added_tokens.json"));
  std::unordered_map<int64_t, std::string> known;
  for (const AddedToken& token : vocabulary.added) known[token.id] = token.content;
  for (const auto& [content, id] : document.vocab) {
    if (id > IdRange::kMaxId) {
      return make_error(Code::kCorrupt, "added_tokens.json: the id of {} is {}", quote_text(content), id);
    }
    if (known.try_emplace(id, content).second) {
      vocabulary.added.push_back({.id = static_cast<int32_t>(id), .content = content});
    }
  }
  return {};
}

Status apply_special_tokens_map(Vocabulary& vocabulary, std::string_view text) {
  WH_ASSIGN(const json map, parse_json_document(text, "special_tokens_map.json"));
  return apply_named_tokens(vocabulary, map, vocabulary.kind == TokenizerKind::kSentencePieceBpe);
}

const json* find_member(const json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto member = object.find(key);
  return member == object.end() || member->is_null() ? nullptr : &*member;
}

Result<bool> bool_member(const json& object, const char* key, bool otherwise) {
  const json* member = find_member(object, key);
  if (member == nullptr) return otherwise;
  if (!member->is_boolean())
    return make_error(Code::kCorrupt, "tokenizer files: {} is neither true nor false", key);
  return member->get<bool>();
}

Result<std::string> string_member(const json& object, const char* key) {
  const json* member = find_member(object, key);
  if (member == nullptr) return std::string();
  if (!member->is_string()) return make_error(Code::kCorrupt, "tokenizer files: {} is no string", key);
  return member->get<std::string>();
}

Result<AddedToken> parse_added_token(const json& entry, int64_t id) {
  AddedToken token;
  WH_ASSIGN(token.content, string_member(entry, "content"));
  if (id < 0 || id > IdRange::kMaxId) {
    return make_error(Code::kCorrupt, "tokenizer files: added token {} has the id {}; ids go from 0 to {}",
                      quote_text(token.content), id, IdRange::kMaxId);
  }
  if (token.content.empty()) {
    return make_error(Code::kCorrupt, "tokenizer files: added token {} has no content", id);
  }
  token.id = static_cast<int32_t>(id);
  WH_ASSIGN(token.special, bool_member(entry, "special", false));
  WH_ASSIGN(token.lstrip, bool_member(entry, "lstrip", false));
  WH_ASSIGN(token.rstrip, bool_member(entry, "rstrip", false));
  WH_ASSIGN(token.single_word, bool_member(entry, "single_word", false));
  WH_ASSIGN(token.normalized, bool_member(entry, "normalized", !token.special));
  return token;
}

Status place_tokens(Vocabulary& vocabulary, std::vector<std::pair<std::string, int64_t>> tokens) {
  IdRange range;
  for (const auto& [spelling, id] : tokens) range.count(1, id, spelling);
  WH_ASSIGN(const size_t num_ids, range.size());
  vocabulary.tokens.resize(num_ids);
  for (auto& [spelling, id] : tokens) {
    std::string& place = vocabulary.tokens[static_cast<size_t>(id)];
    if (!place.empty()) {
      return make_error(Code::kCorrupt, "tokenizer: the tokens {} and {} both have the id {}",
                        quote_text(place), quote_text(spelling), id);
    }
    place = std::move(spelling);
  }
  return {};
}

void IdRange::count(size_t num_tokens, int64_t largest_id, std::string_view name) {
  num_tokens_ += num_tokens;
  if (largest_id > largest_) {
    largest_ = largest_id;
    largest_name_ = name;
  }
  if (num_tokens > 0 && largest_id < 0 && !has_negative_) {
    has_negative_ = true;
    negative_name_ = name;
  }
}

Result<size_t> IdRange::size() const {
  constexpr int64_t kMaxHole = 65536;
  if (has_negative_)
    return make_error(Code::kCorrupt, "tokenizer: the id of {} is negative", quote_text(negative_name_));
  if (largest_ > kMaxId) {
    return make_error(Code::kCorrupt, "tokenizer: the id of {} is {}; at most {} makes sense",
                      quote_text(largest_name_), largest_, kMaxId);
  }
  if (largest_ + 1 > 2 * static_cast<int64_t>(num_tokens_) + kMaxHole) {
    return make_error(Code::kCorrupt, "tokenizer: the id of {} is {}, but there are {} tokens only",
                      quote_text(largest_name_), largest_, num_tokens_);
  }
  return static_cast<size_t>(largest_ + 1);
}

}  // namespace whippet
