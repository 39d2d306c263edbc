#include "text/utf8.h"

#include <gtest/gtest.h>

#include <random>

namespace whippet {
namespace {

std::string repaired(std::string_view bytes) {
  std::string out;
  append_repaired_utf8(out, bytes);
  return out;
}

TEST(Utf8, EveryScalarValueSurvivesTheRoundTrip) {
  for (char32_t code = 0; code < 0x110000; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    std::string bytes;
    append_utf8(bytes, code);
    const Utf8Character character = decode_utf8(bytes.data(), bytes.data() + bytes.size());
    ASSERT_EQ(character.code, code);
    ASSERT_EQ(character.size, bytes.size());
  }
}

// The examples of the Unicode standard, chapter 3.9, tables 3-8 to 3-11; R stands for U+FFFD.
TEST(Utf8, ReplacesMaximalSubparts) {
  const std::pair<std::string_view, std::string_view> examples[] = {
      {"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", "RRRRRRRRA"},
      {"\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", "RRRRRRRRA"},
      {"\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", "RRRRRARRB"},
      {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", "RRRRA"},
      {"plain", "plain"},
      {"\xE4\xBD\xA0\xE5\xA5", "\xE4\xBD\xA0R"}};
  for (const auto& [bytes, pattern] : examples) {
    std::string expected;
    for (const char byte : pattern) expected += byte == 'R' ? "\xEF\xBF\xBD" : std::string(1, byte);
    EXPECT_EQ(repaired(bytes), expected);
  }
}

TEST(Utf8, UnfinishedSuffixIsWhatMoreBytesCanStillComplete) {
  std::mt19937 random(1);
  constexpr unsigned char kBytes[] = {'a',  0x80, 0x90, 0xA0, 0xBF, 0xC2, 0xE0,
                                      0xE4, 0xED, 0xF0, 0xF4, 0xF5, 0xFF};
  for (int i = 0; i < 20000; ++i) {
    std::string bytes;
    for (size_t n = random() % 6; n > 0; --n)
      bytes += static_cast<char>(kBytes[random() % std::size(kBytes)]);
    // By definition: the shortest cut that leaves a text which any continuation keeps as it is.
    size_t expected = 0;
    for (size_t cut = 1; cut <= std::min<size_t>(3, bytes.size()); ++cut) {
      const std::string head = bytes.substr(0, bytes.size() - cut), tail = bytes.substr(bytes.size() - cut);
      for (const char* more :
           {"\x80", "\xBF", "\x90", "\x80\x80", "\xA0\x80", "\x90\x80", "\x80\x80\x80", "\x90\x80\x80"}) {
        const std::string whole = tail + more;
        const Utf8Character character = decode_utf8(whole.data(), whole.data() + whole.size());
        if (character.code != kInvalidCharacter && character.size > cut) expected = cut;
      }
    }
    ASSERT_EQ(unfinished_utf8_suffix(bytes), expected) << testing::PrintToString(bytes);
  }
}

TEST(Utf8, FindsTheFirstByteThatIsNotAscii) {
  for (size_t size = 0; size < 40; ++size) {
    for (size_t begin = 0; begin <= size; ++begin) {
      std::string text(size, 'x');
      EXPECT_EQ(find_non_ascii(text, begin), size);
      for (size_t at = begin; at < size; ++at) {
        text[at] = '\x80';
        EXPECT_EQ(find_non_ascii(text, begin), at);
        text[at] = 'x';
      }
    }
  }
}

TEST(Utf8, QuotesAnythingAsOneShortCleanLine) {
  EXPECT_EQ(quote_text("ab\n\x01\xFF"), "\"ab??\xEF\xBF\xBD\"");
  EXPECT_LT(quote_text(std::string(1000, 'x')).size(), 80u);
}

}  // namespace
}  // namespace whippet
