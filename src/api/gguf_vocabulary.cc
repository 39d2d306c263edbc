#include "api/gguf_vocabulary.h"

#include <limits>
#include <string>
#include <utility>

namespace whippet {
namespace {

using nlohmann::json;

Error wrong_type(const std::string& key, const char* expected) {
  return make_error(Code::kCorrupt, "GGUF metadata: {} should be {}", key, expected);
}

// nullptr when absent.
const json* find(const json& metadata, const std::string& key) {
  const auto found = metadata.find(key);
  return found == metadata.end() || found->is_null() ? nullptr : &*found;
}

Status read(const json& metadata, const std::string& key, std::string& text) {
  const json* value = find(metadata, key);
  if (value == nullptr) return {};
  if (!value->is_string()) return wrong_type(key, "a text");
  text = value->get<std::string>();
  return {};
}

Status read(const json& metadata, const std::string& key, std::optional<bool>& flag) {
  const json* value = find(metadata, key);
  if (value == nullptr) return {};
  if (!value->is_boolean()) return wrong_type(key, "true or false");
  flag = value->get<bool>();
  return {};
}

Status read(const json& metadata, const std::string& key, std::optional<int64_t>& id) {
  const json* value = find(metadata, key);
  if (value == nullptr) return {};
  if (!value->is_number_integer()) return wrong_type(key, "a token id");
  const uint64_t number = value->get<uint64_t>();
  // Writers spell "none" as -1 in an unsigned field.
  if (number < std::numeric_limits<uint32_t>::max()) id = static_cast<int64_t>(number);
  return {};
}

Status read(const json& metadata, const std::string& key, std::vector<std::string>& texts) {
  const json* value = find(metadata, key);
  if (value == nullptr) return {};
  if (!value->is_array()) return wrong_type(key, "a list of texts");
  texts.reserve(value->size());
  for (const json& item : *value) {
    if (!item.is_string()) return wrong_type(key, "a list of texts");
    texts.push_back(item.get_ref<const std::string&>());
  }
  return {};
}

template <class T>
Status read(const json& metadata, const std::string& key, std::vector<T>& numbers) {
  const json* value = find(metadata, key);
  if (value == nullptr) return {};
  if (!value->is_array()) return wrong_type(key, "a list of numbers");
  numbers.reserve(value->size());
  for (const json& item : *value) {
    if (!item.is_number()) return wrong_type(key, "a list of numbers");
    numbers.push_back(item.get<T>());
  }
  return {};
}

}  // namespace

Result<GgufVocabulary> read_gguf_vocabulary(const json& metadata) {
  GgufVocabulary v;
  if (!metadata.is_object()) return make_error(Code::kNotFound, "the GGUF file has no vocabulary");
  const std::string prefix = "tokenizer.ggml.";
  WH_TRY(read(metadata, prefix + "model", v.model));
  WH_TRY(read(metadata, prefix + "pre", v.pre));
  WH_TRY(read(metadata, prefix + "tokens", v.tokens));
  WH_TRY(read(metadata, prefix + "scores", v.scores));
  WH_TRY(read(metadata, prefix + "token_type", v.types));
  WH_TRY(read(metadata, prefix + "merges", v.merges));
  WH_TRY(read(metadata, prefix + "bos_token_id", v.bos_id));
  WH_TRY(read(metadata, prefix + "eos_token_id", v.eos_id));
  WH_TRY(read(metadata, prefix + "unknown_token_id", v.unknown_id));
  WH_TRY(read(metadata, prefix + "padding_token_id", v.pad_id));
  WH_TRY(read(metadata, prefix + "add_bos_token", v.add_bos));
  WH_TRY(read(metadata, prefix + "add_eos_token", v.add_eos));
  WH_TRY(read(metadata, prefix + "add_space_prefix", v.add_space_prefix));
  if (v.tokens.empty()) return make_error(Code::kNotFound, "the GGUF file has no vocabulary");
  return v;
}

}  // namespace whippet
