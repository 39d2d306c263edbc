// Reads a Vocabulary from the files that checkpoints bring. Files are untrusted: memory stays proportional to
// their size, errors name the file's item. Tokenizer::from_folder and the GGUF loader use it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/vocabulary.h"

namespace whippet {

// tokenizer.json, or tokenizer.model, or vocab.json + merges.txt, in this order (a tokenizer.json of an
// unsupported kind gives way to a tokenizer.model beside it), with added_tokens.json, special_tokens_map.json
// and tokenizer_config.json. kNotFound when there is none.
Result<Vocabulary> read_vocabulary_folder(const std::filesystem::path& folder);

// Hugging Face's tokenizer.json: byte-level BPE, or BPE in sentencepiece's style. kUnsupported names the
// part.
Result<Vocabulary> read_tokenizer_json(std::string_view json);

// GPT-2's pair of files. The pre-tokenizer is kGpt2 until apply_tokenizer_config knows better.
Result<Vocabulary> read_vocab_and_merges(std::string_view vocab_json, std::string_view merges_txt);

// Sentencepiece's ModelProto, BPE only. Control pieces become special added tokens.
Result<Vocabulary> read_sentencepiece_model(std::string_view model);

// Which file the vocabulary came from decides what a tokenizer_config.json may say about it.
enum class VocabularySource { kTokenizerJson, kSentencePieceModel, kVocabAndMerges };

// tokenizer_config.json: added tokens, bos, eos, unknown and pad, and whether bos and eos are added.
Status apply_tokenizer_config(Vocabulary& vocabulary, VocabularySource source, std::string_view json);
// added_tokens.json: {"<|im_end|>": 151645, ...}; the special ones are known by apply_tokenizer_config or
// apply_special_tokens_map, called later.
Status apply_added_tokens(Vocabulary& vocabulary, std::string_view json);
// special_tokens_map.json: bos_token, eos_token, ..., additional_special_tokens.
Status apply_special_tokens_map(Vocabulary& vocabulary, std::string_view json);

// The tokenizer.ggml.* metadata of a GGUF file.
struct GgufVocabulary {
  std::string model;                // .model: "gpt2" | "llama"
  std::string pre;                  // .pre: "qwen2", "smollm", ...; empty when absent
  std::vector<std::string> tokens;  // .tokens
  std::vector<float> scores;        // .scores, may be empty
  std::vector<int32_t> types;       // .token_type, may be empty: 1 normal, 2 unknown, 3 control, ...
  std::vector<std::string> merges;  // .merges: "a b"
  std::optional<int64_t> bos_id, eos_id, unknown_id, pad_id;  // ids beyond the tokens are an error
  std::optional<bool> add_bos, add_eos, add_space_prefix;
};
Result<Vocabulary> vocabulary_from_gguf(GgufVocabulary gguf);

// How many ids a list of tokens spans; refuses ids that would make a table far larger than the list.
class IdRange {
 public:
  static constexpr int64_t kMaxId = 9'999'999;

  // num_tokens more tokens, of which largest_id (that of `name`) is the largest id.
  void count(size_t num_tokens, int64_t largest_id, std::string_view name);
  // 1 + the largest id. kCorrupt names the token whose id is negative, above kMaxId, or leaves too large a
  // hole.
  Result<size_t> size() const;

 private:
  size_t num_tokens_ = 0;
  int64_t largest_ = -1;
  std::string largest_name_;
  std::string negative_name_;
  bool has_negative_ = false;
};

}  // namespace whippet
