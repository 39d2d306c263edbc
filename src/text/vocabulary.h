// What a tokenizer is made of, whatever file it came from: tokenizer.json, vocab.json + merges.txt,
// tokenizer.model (sentencepiece) or the metadata of a GGUF file. Plain data; the Tokenizer compiles it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace whippet {

enum class TokenizerKind { kByteLevelBpe, kSentencePieceBpe };

// The regular expression that cuts text into words before BPE.
enum class PreTokenizer {
  kNone,    // sentencepiece
  kGpt2,    // the GPT-2 expression
  kSmolLm,  // every digit (Unicode N*) alone, then GPT-2
  kQwen2,   // one \p{N} per word, case-insensitive contractions
  kLlama3,  // like Qwen2 with \p{N}{1,3}
};

enum class TokenType : uint8_t { kNormal, kUnknown, kControl, kUserDefined, kUnused, kByte };

struct AddedToken {
  int32_t id = 0;
  std::string content;   // raw bytes as they stand in text
  bool special = false;  // dropped by decode(skip_special_tokens)
  bool lstrip = false, rstrip = false, single_word = false, normalized = false;
};

struct Vocabulary {
  TokenizerKind kind = TokenizerKind::kByteLevelBpe;
  PreTokenizer pre_tokenizer = PreTokenizer::kNone;
  bool nfc = false;               // normalise to NFC before splitting (Qwen)
  bool ignore_merges = false;     // a whole word that is a token needs no merging (Llama 3)
  bool add_prefix_space = false;  // sentencepiece's add_dummy_prefix; before every text between added tokens
  bool prefix_only_at_start = false;  // that space before the whole text only, not after added tokens
  bool prefix_unless_space = false;   // no such space where there is one already (byte-level BPE: always so)
  bool byte_fallback = false;         // unknown code points become <0xNN> tokens
  bool fuse_unknown = false;
  bool add_bos = false, add_eos = false;
  std::vector<std::string>
      tokens;                    // [vocab] spelling: byte-level alphabet, or sentencepiece pieces with U+2581
  std::vector<float> scores;     // [vocab], sentencepiece only
  std::vector<TokenType> types;  // [vocab] or empty (all normal)
  std::vector<std::pair<std::string, std::string>> merges;  // byte-level BPE, by rank
  std::vector<AddedToken> added;
  std::optional<int32_t> bos_id, eos_id, unknown_id, pad_id;
};

}  // namespace whippet
