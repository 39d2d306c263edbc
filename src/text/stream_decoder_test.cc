#include "text/stream_decoder.h"

#include <gtest/gtest.h>

#include <random>

#include "text/testing_vocabulary.h"
#include "text/utf8.h"

namespace whippet {
namespace {

using testing_vocabulary::byte_level;
using testing_vocabulary::create;
using testing_vocabulary::kFirstPiece;
using testing_vocabulary::sentencepiece;

TEST(StreamDecoder, HoldsBackHalfACharacterAndNeverAWholeOne) {
  const Tokenizer tokenizer = create(byte_level());
  StreamDecoder decoder(tokenizer, false);
  EXPECT_EQ(decoder.push('a'), "a");
  EXPECT_EQ(decoder.push(0xE4), "");
  EXPECT_EQ(decoder.push(0xBD), "");
  EXPECT_EQ(decoder.push(0xA0), "\u4F60");
  EXPECT_EQ(decoder.push(0xF0), "");
  EXPECT_EQ(decoder.push(0x9F), "");
  EXPECT_EQ(decoder.push(0x98), "");
  EXPECT_EQ(decoder.push(0x80), "\U0001F600");
  EXPECT_EQ(decoder.finish(), "");
}

TEST(StreamDecoder, BytesThatCanBecomeNothingAreReplacedAtOnce) {
  const Tokenizer tokenizer = create(byte_level());
  StreamDecoder decoder(tokenizer, false);
  EXPECT_EQ(decoder.push(0xFF), "\uFFFD");
  EXPECT_EQ(decoder.push(0xE4), "");
  EXPECT_EQ(decoder.push('a'), "\uFFFDa");
  EXPECT_EQ(decoder.push(0xE0), "");
  EXPECT_EQ(decoder.push(0x80), "\uFFFD\uFFFD") << "no character begins E0 80";
  EXPECT_EQ(decoder.push(0xF4), "");
  EXPECT_EQ(decoder.push(0x8F), "");
  EXPECT_EQ(decoder.finish(), "\uFFFD");
}

TEST(StreamDecoder, SkipsSpecialTokensInTheMiddleOfACharacter) {
  Vocabulary vocabulary = byte_level();
  vocabulary.added.push_back({.id = 256, .content = "<end>", .special = true});
  const Tokenizer tokenizer = create(vocabulary);
  StreamDecoder skipping(tokenizer, true), showing(tokenizer, false);
  std::string skipped, shown;
  for (const int32_t id : {0xC3, 256, 0xA9, -1, 999, int{'x'}}) {
    skipped += skipping.push(id);
    shown += showing.push(id);
  }
  EXPECT_EQ(skipped, "\u00E9x");
  EXPECT_EQ(shown, "\uFFFD<end>\uFFFDx");
}

TEST(StreamDecoder, KeepsTheSpecialTokensThatItIsToldToKeep) {
  Vocabulary vocabulary = byte_level();
  vocabulary.added.push_back({.id = 256, .content = "<end>", .special = true});
  vocabulary.added.push_back({.id = 257, .content = "<call>", .special = true});
  const Tokenizer tokenizer = create(vocabulary);
  StreamDecoder decoder(tokenizer, true, false, {257});
  std::string text;
  for (const int32_t id : {int{'a'}, 256, 257, int{'b'}}) text += decoder.push(id);
  EXPECT_EQ(text, "a<call>b");
}

TEST(StreamDecoder, DropsThePrefixSpaceAtTheBeginningOnly) {
  Vocabulary vocabulary = sentencepiece({"\u2581a"});
  vocabulary.add_prefix_space = true;
  const Tokenizer tokenizer = create(vocabulary);
  StreamDecoder decoder(tokenizer, true);
  EXPECT_EQ(decoder.push(1), "") << "<s>";
  EXPECT_EQ(decoder.push(kFirstPiece), "a");
  EXPECT_EQ(decoder.push(kFirstPiece), " a");
  StreamDecoder continuing(tokenizer, true, true);
  EXPECT_EQ(continuing.push(kFirstPiece), " a");
}

TEST(StreamDecoder, TheStreamIsTheDecodedText) {
  Vocabulary vocabulary = byte_level({{"\u00C3", "\u00A9"}, {"\u00A9", "\u00C3"}});
  vocabulary.added.push_back({.id = 258, .content = "<\u00E9>", .special = true});
  const Tokenizer tokenizer = create(vocabulary);
  std::mt19937 random(4);
  for (int i = 0; i < 20000; ++i) {
    const bool skip = random() % 2 == 0;
    StreamDecoder decoder(tokenizer, skip);
    std::vector<int32_t> ids(random() % 12);
    std::string streamed, bytes;
    for (int32_t& id : ids) {
      id = static_cast<int32_t>(random() % 2 == 0 ? 0x80 + random() % 132 : random() % 260);
      streamed += decoder.push(id);
      if (!skip || !tokenizer.is_special(id)) bytes += tokenizer.token_bytes(id);
      // All that is whole has been said: only the beginning of a character may be missing.
      std::string said;
      append_repaired_utf8(said, bytes.substr(0, bytes.size() - unfinished_utf8_suffix(bytes)));
      ASSERT_EQ(streamed, said);
    }
    ASSERT_EQ(streamed + decoder.finish(), tokenizer.decode(ids, skip));
  }
}

}  // namespace
}  // namespace whippet
