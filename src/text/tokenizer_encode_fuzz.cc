// Arbitrary bytes, arbitrarily marked as a user's, through small tokenizers of every kind: what holds for all
// text must hold for these.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "text/byte_alphabet.h"
#include "text/stream_decoder.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace {

using namespace whippet;

constexpr int32_t kControl = 400;

void finish(Vocabulary& vocabulary) {
  vocabulary.added = {{.id = kControl, .content = "<e>", .special = true},
                      {.id = 401, .content = "<t>"},
                      {.id = 402, .content = "  ", .normalized = true}};
}

Tokenizer byte_level(PreTokenizer pre_tokenizer) {
  Vocabulary vocabulary;
  vocabulary.pre_tokenizer = pre_tokenizer;
  for (int byte = 0; byte < 256; ++byte)
    vocabulary.tokens.push_back(spelling_of_byte(static_cast<unsigned char>(byte)));
  for (const auto& [left, right] :
       {std::pair("a", "a"), std::pair("aa", "aa"), std::pair("<", "e"), std::pair("\u0120", "a")}) {
    vocabulary.merges.emplace_back(left, right);
    vocabulary.tokens.push_back(std::string(left) + right);
  }
  finish(vocabulary);
  return Tokenizer::create(vocabulary).value();
}

Tokenizer sentencepiece() {
  Vocabulary vocabulary;
  vocabulary.kind = TokenizerKind::kSentencePieceBpe;
  vocabulary.byte_fallback = true;
  for (int byte = 0; byte < 256; ++byte) vocabulary.tokens.push_back(fmt::format("<0x{:02X}>", byte));
  vocabulary.types.assign(256, TokenType::kByte);
  for (const char* piece : {"a", "aa", "\u2581", "\u2581a", "<", "e", "<e", ">", "[e]"}) {
    vocabulary.tokens.push_back(piece);
    vocabulary.types.push_back(piece[0] == '[' ? TokenType::kUserDefined : TokenType::kNormal);
  }
  vocabulary.scores.resize(vocabulary.tokens.size());
  for (size_t i = 0; i < vocabulary.scores.size(); ++i) vocabulary.scores[i] = -static_cast<float>(i % 4);
  finish(vocabulary);
  return Tokenizer::create(vocabulary).value();
}

const Tokenizer& pick(size_t which) {
  static const Tokenizer tokenizers[] = {byte_level(PreTokenizer::kGpt2), byte_level(PreTokenizer::kSmolLm),
                                         byte_level(PreTokenizer::kQwen2), byte_level(PreTokenizer::kLlama3),
                                         sentencepiece()};
  return tokenizers[which % std::size(tokenizers)];
}

// What decoding the text's ids gives: the text repaired; to sentencepiece U+2581 is a space.
std::string expected_text(const Tokenizer& tokenizer, std::string_view text) {
  std::string repaired;
  append_repaired_utf8(repaired, text);
  if (std::string_view(tokenizer.kind_name()) == "byte-level BPE") return repaired;
  for (size_t at = repaired.find("\u2581"); at != std::string::npos; at = repaired.find("\u2581", at)) {
    repaired.replace(at, 3, " ");
  }
  return repaired;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const Tokenizer& tokenizer = pick(data[0]);
  const std::string text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::string expected = expected_text(tokenizer, text);

  const auto ids = tokenizer.encode(text);
  WH_CHECK(tokenizer.decode(ids) == expected);
  StreamDecoder decoder(tokenizer, false);
  std::string streamed;
  for (const int32_t id : ids) streamed += decoder.push(id);
  WH_CHECK(streamed + decoder.finish() == expected);

  const auto plain = tokenizer.encode(text, {.parse_special = false});
  WH_CHECK(std::find(plain.begin(), plain.end(), kControl) == plain.end());
  WH_CHECK(tokenizer.decode(plain) == expected);

  MarkedText marked{text, {}};
  for (size_t begin = data[1] % 8; begin < text.size();) {
    const size_t end = std::min(text.size(), begin + 1 + data[1] / 8 % 8);
    marked.user_spans.push_back({begin, end});
    begin = end + 1 + data[1] / 64;
  }
  WH_CHECK(tokenizer.decode(tokenizer.encode(marked)) == expected);
  return 0;
}
