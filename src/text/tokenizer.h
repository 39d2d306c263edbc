// Text to token ids and back: byte-level BPE and sentencepiece BPE behind one class.
// Immutable after construction; every method is safe from any thread. Encoding is linear in time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/marked_text.h"
#include "text/vocabulary.h"

namespace whippet {

struct EncodeOptions {
  bool parse_special = true;        // spelled control tokens become their ids
  bool add_special_tokens = false;  // BOS / EOS as the vocabulary asks for
};

class Tokenizer {
 public:
  // kCorrupt when the vocabulary contradicts itself; the message names the token or merge.
  static Result<Tokenizer> create(Vocabulary vocabulary);
  // The tokenizer files of a checkpoint folder, see read_vocabulary_folder.
  static Result<Tokenizer> from_folder(const std::filesystem::path& folder);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // Invalid UTF-8 is encoded byte by byte where the vocabulary can, never refused.
  std::vector<int32_t> encode(std::string_view text, EncodeOptions options = {}) const;
  // A rendered chat; nothing is added. What users wrote stays text: inside their spans, and across the
  // borders, neither special tokens nor added tokens spelled as markup (<...>, [...]) are recognised. Other
  // text between tokens is encoded as one piece, across the borders of spans. parse_special = false says that
  // all of the text is a user's.
  std::vector<int32_t> encode(const MarkedText& text) const;

  // The text of the ids; bytes that are no UTF-8 become U+FFFD. Ids outside the vocabulary decode to nothing.
  std::string decode(std::span<const int32_t> ids, bool skip_special_tokens = false) const;
  // The raw bytes of one token (may be a part of a character); empty outside the vocabulary.
  std::string_view token_bytes(int32_t id) const;
  // Control tokens: what skip_special_tokens drops.
  bool is_special(int32_t id) const;
  // The id of a token by its exact spelling in text ("<|im_end|>"), control and added tokens included.
  std::optional<int32_t> find(std::string_view token) const;

  int32_t vocab_size() const;  // 1 + the largest id that has a spelling
  std::optional<int32_t> bos_id() const;
  std::optional<int32_t> eos_id() const;
  bool adds_bos() const;
  // decode() drops the one space at the beginning of the text that encode() puts there (Llama 2).
  bool drops_first_space() const;
  const char* kind_name() const;  // "byte-level BPE" | "sentencepiece BPE"

 private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace whippet
