#include "openai/json_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace whippet::openai {
namespace {

using nlohmann::json;

std::string json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

std::string utf8(char32_t code) {
  return json::parse("\"" +
                     [&] {
                       char escape[16];
                       if (code < 0x10000) {
                         std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(code));
                       } else {
                         std::snprintf(escape, sizeof escape, "\\u%04x\\u%04x",
                                       0xD800 + ((static_cast<unsigned>(code) - 0x10000) >> 10),
                                       0xDC00 + (static_cast<unsigned>(code) & 0x3FF));
                       }
                       return std::string(escape);
                     }() +
                     "\"")
      .get<std::string>();
}

TEST(JsonText, EveryCharacterComesBack) {
  std::string all;
  for (char32_t code = 0; code < 0x110000; code += code < 0x3000 ? 1 : 7) {
    if (code >= 0xD800 && code < 0xE000) continue;
    const std::string character = utf8(code);
    ASSERT_EQ(json::parse(json_string(character)), character) << static_cast<unsigned>(code);
    ASSERT_EQ(json::parse(json_string("a" + character + "b" + character)), "a" + character + "b" + character);
    all += character;
  }
  EXPECT_EQ(json::parse(json_string(all)), all);
}

TEST(JsonText, OrdinaryTextIsWrittenAsOthersWriteIt) {
  for (const char* text :
       {"", "Hello, world", "say \"hi\"\\\n\t\r", "你好，世界", "🦙 café", "a/b", "\x01\x1f"})
    EXPECT_EQ(json_string(text), json(text).dump()) << text;
}

TEST(JsonText, NothingEndsALine) {
  const std::string out = json_string("\n\r\x0b\x0c\x1c\x1d\x1e\x7f\u0085\u2028\u2029");
  for (const char* end : {"\n", "\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\u0085", "\u2028", "\u2029"})
    EXPECT_EQ(out.find(end), std::string::npos);
  EXPECT_EQ(json_string("\u0085\u2028\u2029"), "\"\\u0085\\u2028\\u2029\"");
  EXPECT_EQ(json_string("\u0086\u2027\u202a\u00e9"), "\"\u0086\u2027\u202a\u00e9\"")
      << "neighbours are left alone";
}

TEST(JsonText, NumbersAreShortAndAlwaysNumbers) {
  const auto number = [](int64_t value) {
    std::string out;
    append_number(out, value);
    return out;
  };
  const auto logprob = [](float value) {
    std::string out;
    append_logprob(out, value);
    return out;
  };
  EXPECT_EQ(number(0), "0");
  EXPECT_EQ(number(std::numeric_limits<int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(logprob(-0.1f), "-0.1");
  EXPECT_EQ(logprob(0), "0");
  EXPECT_EQ(json::parse(logprob(-1e-7f)).get<float>(), -1e-7f);
  EXPECT_EQ(logprob(-std::numeric_limits<float>::infinity()), "-9999");
  EXPECT_EQ(logprob(std::nanf("")), "-9999");
  EXPECT_EQ(logprob(1e-6f), "0") << "rounding went above";
}

}  // namespace
}  // namespace whippet::openai
