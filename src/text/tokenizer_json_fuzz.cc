// The JSON files of a tokenizer, hostile: no crash, no memory out of proportion. The first byte picks the
// file.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "text/tokenizer.h"
#include "text/vocabulary_reader.h"

namespace {

using namespace whippet;

void use(Result<Vocabulary> vocabulary) {
  if (!vocabulary.ok()) return;
  const auto tokenizer = Tokenizer::create(std::move(vocabulary).value());
  if (!tokenizer.ok()) return;
  const auto ids = tokenizer->encode("Hello <s> w\u00F6rld'S 12  \n\xFF", {.add_special_tokens = true});
  tokenizer->decode(ids, true);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      use(read_tokenizer_json(text));
      break;
    case 1: {
      const size_t half = text.find('\0');
      if (half != std::string_view::npos)
        use(read_vocab_and_merges(text.substr(0, half), text.substr(half + 1)));
      break;
    }
    default: {
      Vocabulary vocabulary;
      vocabulary.tokens = {"a", "b", "ab", "<s>"};
      vocabulary.merges = {{"a", "b"}};
      const auto source = static_cast<VocabularySource>(data[0] / 4 % 3);
      const bool applied = data[0] % 4 == 2 ? apply_tokenizer_config(vocabulary, source, text).ok()
                                            : apply_added_tokens(vocabulary, text).ok() &&
                                                  apply_special_tokens_map(vocabulary, text).ok();
      if (applied) use(std::move(vocabulary));
    }
  }
  return 0;
}
