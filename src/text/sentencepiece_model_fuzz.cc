// A hostile tokenizer.model: no crash, no memory out of proportion.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "text/tokenizer.h"
#include "text/vocabulary_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto vocabulary = whippet::read_sentencepiece_model({reinterpret_cast<const char*>(data), size});
  if (!vocabulary.ok()) return 0;
  const auto tokenizer = whippet::Tokenizer::create(std::move(vocabulary).value());
  if (!tokenizer.ok()) return 0;
  const auto ids =
      tokenizer->encode("Hello <s> w\u00F6rld \xE2\x96\x81 12  \n\xFF", {.add_special_tokens = true});
  tokenizer->decode(ids, true);
  return 0;
}
