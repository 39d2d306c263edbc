// The parts that the readers of tokenizer.json, vocab.json and tokenizer_config.json share.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "text/vocabulary.h"

namespace whippet {

// A parsed tokenizer file: the two huge lists apart, everything else as a tree.
struct TokenizerDocument {
  nlohmann::json root;                                      // without model.vocab and model.merges
  std::vector<std::pair<std::string, int64_t>> vocab;       // in the order of the file
  std::vector<std::pair<std::string, std::string>> merges;  // by rank
};

// file: for messages. kCorrupt gives the byte where the JSON breaks, or the merge that is none.
Result<TokenizerDocument> parse_tokenizer_document(std::string_view json, std::string_view file);
// A flat {"token": id} object; only `vocab` is filled.
Result<TokenizerDocument> parse_vocab_document(std::string_view json, std::string_view file);
// Any JSON of moderate depth.
Result<nlohmann::json> parse_json_document(std::string_view json, std::string_view file);

// "a b" as two parts; kCorrupt names the merge. index: from 1.
Result<std::pair<std::string, std::string>> split_merge(std::string_view merge, size_t index);

// Puts the tokens in their places.
Status place_tokens(Vocabulary& vocabulary, std::vector<std::pair<std::string, int64_t>> tokens);

// Access to members that may be absent or null; kCorrupt when one is of another type.
const nlohmann::json* find_member(const nlohmann::json& object, const char* key);
Result<bool> bool_member(const nlohmann::json& object, const char* key, bool otherwise);
Result<std::string> string_member(const nlohmann::json& object, const char* key);  // "" when absent
// One entry of added_tokens or added_tokens_decoder.
Result<AddedToken> parse_added_token(const nlohmann::json& entry, int64_t id);
// Adds the token, or replaces the one with its id.
void put_added_token(Vocabulary& vocabulary, AddedToken token);

}  // namespace whippet
