#include <algorithm>

#include "text/sentencepiece_bpe.h"
#include "text/tokenizer_json.h"
#include "text/utf8.h"
#include "text/vocabulary_reader.h"

namespace whippet {
namespace {

struct PreTokenizerName {
  std::string_view name;
  PreTokenizer kind;
  bool nfc;
};

// What converters write to tokenizer.ggml.pre. Files from before that key was known have none or "default".
constexpr PreTokenizerName kPreTokenizers[] = {
    {"", PreTokenizer::kGpt2, false},
    {"default", PreTokenizer::kGpt2, false},
    {"gpt-2", PreTokenizer::kGpt2, false},
    {"smollm", PreTokenizer::kSmolLm, false},
    {"starcoder", PreTokenizer::kSmolLm, false},
    {"qwen2", PreTokenizer::kQwen2, true},
    {"llama-bpe", PreTokenizer::kLlama3, false},
    {"llama3", PreTokenizer::kLlama3, false},
    {"llama-v3", PreTokenizer::kLlama3, false},
};

Status read_pre_tokenizer(const std::string& name, Vocabulary& vocabulary) {
  const auto* known = std::find_if(std::begin(kPreTokenizers), std::end(kPreTokenizers),
                                   [&](const PreTokenizerName& each) { return each.name == name; });
  if (known == std::end(kPreTokenizers)) {
    return make_error(
        Code::kUnsupported,
        "gguf: tokenizer.ggml.pre {} is not supported; qwen2, smollm, llama-bpe and default are",
        quote_text(name));
  }
  vocabulary.pre_tokenizer = known->kind;
  vocabulary.nfc = known->nfc;
  vocabulary.ignore_merges = known->kind == PreTokenizer::kLlama3;
  return {};
}

Status read_types(const std::vector<int32_t>& types, Vocabulary& vocabulary) {
  constexpr TokenType kTypes[] = {TokenType::kNormal,      TokenType::kUnknown, TokenType::kControl,
                                  TokenType::kUserDefined, TokenType::kUnused,  TokenType::kByte};
  if (types.empty()) return {};
  if (types.size() != vocabulary.tokens.size()) {
    return make_error(Code::kCorrupt, "gguf: {} tokens, but {} token types", vocabulary.tokens.size(),
                      types.size());
  }
  vocabulary.types.reserve(types.size());
  for (size_t id = 0; id < types.size(); ++id) {
    if (types[id] < 1 || static_cast<size_t>(types[id]) > std::size(kTypes)) {
      return make_error(Code::kCorrupt, "gguf: token {} ({}) has the unknown type {}", id,
                        quote_text(vocabulary.tokens[id]), types[id]);
    }
    vocabulary.types.push_back(kTypes[types[id] - 1]);
  }
  return {};
}

Status read_id(const char* name, const std::optional<int64_t>& id, std::optional<int32_t>& out,
               size_t num_tokens) {
  if (!id) return {};
  // Converters write -1, as signed or unsigned, for a token that there is not.
  if (*id == -1 || *id == UINT32_MAX) return {};
  if (*id < 0 || static_cast<uint64_t>(*id) >= num_tokens) {
    return make_error(Code::kCorrupt, "gguf: {} is {}, but there are {} tokens", name, *id, num_tokens);
  }
  out = static_cast<int32_t>(*id);
  return {};
}

Status read_ids(const GgufVocabulary& gguf, Vocabulary& vocabulary) {
  const size_t num_tokens = vocabulary.tokens.size();
  WH_TRY(read_id("tokenizer.ggml.bos_token_id", gguf.bos_id, vocabulary.bos_id, num_tokens));
  WH_TRY(read_id("tokenizer.ggml.eos_token_id", gguf.eos_id, vocabulary.eos_id, num_tokens));
  WH_TRY(read_id("tokenizer.ggml.unknown_token_id", gguf.unknown_id, vocabulary.unknown_id, num_tokens));
  WH_TRY(read_id("tokenizer.ggml.padding_token_id", gguf.pad_id, vocabulary.pad_id, num_tokens));
  return {};
}

// Control tokens are special added tokens. In byte-level files the user-defined ones are added tokens as
// well, written as they stand in text; in sentencepiece files they are the model's own user-defined pieces.
void read_added(Vocabulary& vocabulary) {
  const bool byte_level = vocabulary.kind == TokenizerKind::kByteLevelBpe;
  for (size_t id = 0; id < vocabulary.types.size(); ++id) {
    const TokenType type = vocabulary.types[id];
    const bool control = type == TokenType::kControl || (!byte_level && type == TokenType::kUnknown);
    if (vocabulary.tokens[id].empty() || !(control || (byte_level && type == TokenType::kUserDefined)))
      continue;
    const std::string& spelling = vocabulary.tokens[id];
    vocabulary.added.push_back({.id = static_cast<int32_t>(id),
                                .content = byte_level ? spelling : spaces_for_escapes(spelling),
                                .special = control});
  }
}

Status read_byte_level(GgufVocabulary& gguf, Vocabulary& vocabulary) {
  vocabulary.kind = TokenizerKind::kByteLevelBpe;
  WH_TRY(read_pre_tokenizer(gguf.pre, vocabulary));
  vocabulary.merges.reserve(gguf.merges.size());
  for (const std::string& merge : gguf.merges) {
    WH_ASSIGN(auto pair, split_merge(merge, vocabulary.merges.size() + 1));
    vocabulary.merges.push_back(std::move(pair));
  }
  // The models have every byte; an unknown token is a formality.
  vocabulary.unknown_id.reset();
  vocabulary.add_bos = gguf.add_bos.value_or(vocabulary.pre_tokenizer == PreTokenizer::kLlama3);
  vocabulary.add_prefix_space = gguf.add_space_prefix.value_or(false);
  return {};
}

Status read_sentencepiece(GgufVocabulary& gguf, Vocabulary& vocabulary) {
  vocabulary.kind = TokenizerKind::kSentencePieceBpe;
  vocabulary.scores = std::move(gguf.scores);
  vocabulary.fuse_unknown = true;
  const auto& types = vocabulary.types;
  vocabulary.byte_fallback = std::find(types.begin(), types.end(), TokenType::kByte) != types.end();
  vocabulary.add_bos = gguf.add_bos.value_or(true);
  vocabulary.add_prefix_space = gguf.add_space_prefix.value_or(true);
  // Converters cannot write the NUL piece of InternLM2 and put a dragon there.
  const auto is_internlm2 = [](const std::string& token) { return token == "[UNUSED_TOKEN_0]"; };
  if (std::any_of(vocabulary.tokens.begin(), vocabulary.tokens.end(), is_internlm2)) {
    const auto dragon = std::find(vocabulary.tokens.begin(), vocabulary.tokens.end(), "\xF0\x9F\x90\x89");
    if (dragon != vocabulary.tokens.end()) dragon->assign(1, '\0');
  }
  return {};
}

}  // namespace

Result<Vocabulary> vocabulary_from_gguf(GgufVocabulary gguf) {
  Vocabulary vocabulary;
  vocabulary.tokens = std::move(gguf.tokens);
  if (vocabulary.tokens.empty()) return make_error(Code::kCorrupt, "gguf: tokenizer.ggml.tokens is empty");
  WH_TRY(read_types(gguf.types, vocabulary));
  WH_TRY(read_ids(gguf, vocabulary));
  if (gguf.model == "gpt2") {
    WH_TRY(read_byte_level(gguf, vocabulary));
  } else if (gguf.model == "llama") {
    WH_TRY(read_sentencepiece(gguf, vocabulary));
  } else {
    return make_error(Code::kUnsupported,
                      "gguf: tokenizer.ggml.model {} is not supported; gpt2 and llama are",
                      quote_text(gguf.model));
  }
  vocabulary.add_eos = gguf.add_eos.value_or(false);
  read_added(vocabulary);
  return vocabulary;
}

}  // namespace whippet
