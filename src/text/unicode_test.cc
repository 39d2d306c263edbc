#include "text/unicode.h"

#include <gtest/gtest.h>
#include <utf8proc.h>

#include <cstdlib>
#include <random>

#include "text/utf8.h"

namespace whippet {
namespace {

std::string nfc_of_utf8proc(const std::string& text) {
  utf8proc_uint8_t* out = nullptr;
  const auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                 static_cast<utf8proc_ssize_t>(text.size()), &out,
                                 static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  EXPECT_GE(size, 0);
  std::string normalised(reinterpret_cast<char*>(out), static_cast<size_t>(size));
  std::free(out);
  return normalised;
}

TEST(Unicode, ClassesAreThoseOfTheStandard) {
  const UnicodeTable& table = UnicodeTable::get();
  const auto has = [&](char32_t code, uint8_t classes) { return (table[code] & classes) == classes; };
  EXPECT_TRUE(has('a', kLetter | kWord));
  EXPECT_TRUE(has(0x4F60, kLetter));
  EXPECT_TRUE(has('7', kNumber | kWord));
  for (const char32_t number : {0xBD, 0xB2, 0x2167, 0x0663}) EXPECT_TRUE(has(number, kNumber));
  for (const char32_t space :
       {0x09, 0x0D, 0x20, 0x85, 0xA0, 0x1680, 0x2003, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}) {
    EXPECT_TRUE(has(space, kSpace)) << static_cast<uint32_t>(space);
  }
  for (const char32_t other : {0x1C, 0x1F, 0x200B, 0xFEFF, 0x180E, 0x0301}) {
    EXPECT_EQ(table[other] & (kLetter | kNumber | kSpace), 0) << static_cast<uint32_t>(other);
  }
  EXPECT_TRUE(has('\n', kNewline | kSpace));
  EXPECT_FALSE(has(0x2028, kNewline));
  EXPECT_TRUE(has(0x0301, kWord | kNfcUnsafe));
  EXPECT_EQ(table[kInvalidCharacter], 0);
}

TEST(Unicode, NfcOfEveryCodePointAndPairIsRight) {
  const UnicodeTable& table = UnicodeTable::get();
  for (char32_t code = 1; code < 0x110000; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    std::string text = "e";
    append_utf8(text, code);
    append_utf8(text, 0x301);
    ASSERT_EQ(to_nfc(text), nfc_of_utf8proc(text)) << static_cast<uint32_t>(code);
    if ((table[code] & kNfcUnsafe) != 0) continue;
    text.resize(text.size() - 2);
    ASSERT_EQ(nfc_of_utf8proc(text), text) << "U+" << static_cast<uint32_t>(code) << " is said to be inert";
  }
}

TEST(Unicode, NfcOfRandomTextIsThatOfUtf8proc) {
  std::mt19937 random(3);
  constexpr char32_t kTricky[] = {'a',    'e',     0x301,   0x323, 0x338, '>',    0x1100, 0x1161,
                                  0x11A8, 0xAC00,  0x212B,  0x344, 0x915, 0x93C,  0xF71,  0xF72,
                                  0xF73,  0x1D15E, 0x1D165, 0x9C7, 0x9BE, 0x1E0A, 0x3B1};
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (size_t n = 1 + random() % 12; n > 0; --n) append_utf8(text, kTricky[random() % std::size(kTricky)]);
    const std::string expected = nfc_of_utf8proc(text);
    ASSERT_EQ(to_nfc(text), expected);
    if (is_surely_nfc(text)) {
      ASSERT_EQ(expected, text);
    }
  }
}

TEST(Unicode, NfcKeepsIllFormedBytesAndLetsThemSeparate) {
  EXPECT_EQ(to_nfc("e\xFF\xCC\x81"), "e\xFF\xCC\x81");
  EXPECT_EQ(to_nfc("\x80"
                   "e\xCC\x81\xE4"),
            "\x80\xC3\xA9\xE4");
}

TEST(Unicode, NfcSortsALongRunOfMarks) {
  std::string text = "q", expected = "q";
  for (int i = 0; i < 300'000; ++i) text += "\xCC\x81\xCC\xA3";  // U+0301 (230), U+0323 (220)
  for (int i = 0; i < 300'000; ++i) expected += "\xCC\xA3";
  for (int i = 0; i < 300'000; ++i) expected += "\xCC\x81";
  EXPECT_TRUE(to_nfc(text) == expected);
}

}  // namespace
}  // namespace whippet
