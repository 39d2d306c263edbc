#include "openai/body_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace whippet::openai {
namespace {

using testing::HasSubstr;

std::string error_of(const std::string& body) {
  const auto read = read_body(body);
  if (read.index() == 0) return "";
  EXPECT_EQ(std::get<1>(read).status, 400);
  EXPECT_EQ(std::get<1>(read).code, "invalid_json");
  EXPECT_TRUE(Json::accept(std::get<1>(read).body()));
  return std::get<1>(read).message;
}

std::string repeated(const std::string& text, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) all += text;
  return all;
}

TEST(ReadBody, ReadsWhatNlohmannReads) {
  for (
      const char* body :
      {"{}",
       R"({"a": [1, -2, 3.5, true, false, null, "x"], "b": {"c": {}, "d": []}, "e": [[], [[1]], {"f": 1}]})",
       R"( {"big": 18446744073709551615, "small": -9223372036854775808, "more": 1e30, "": "\u4f60\ud83e\udd99"} )"}) {
    const auto read = read_body(body);
    ASSERT_EQ(read.index(), 0u) << std::get<1>(read).message;
    EXPECT_EQ(std::get<0>(read).dump(), Json::parse(body).dump());
  }
}

TEST(ReadBody, SaysWhereItIsWrong) {
  EXPECT_THAT(error_of("{\"a\": nope}"), HasSubstr("at byte 8: syntax error"));
  EXPECT_THAT(error_of(""), HasSubstr("at byte 1"));
  EXPECT_THAT(error_of("{\"a\": 1"), HasSubstr("at byte 8"));
  EXPECT_THAT(error_of("{} x"), HasSubstr("at byte 4"));
  EXPECT_THAT(error_of("{\"a\": NaN}"), HasSubstr("at byte 7"));
  EXPECT_THAT(error_of("{\"a\": 1e999}"), HasSubstr("number overflow"));
  EXPECT_THAT(error_of("{\"a\": \"\xff\"}"),
              HasSubstr("at byte 8: syntax error while parsing value - invalid string"));
  EXPECT_THAT(error_of("{\"a\": \"\xed\xa0\x80\"}"), HasSubstr("ill-formed UTF-8"));
  EXPECT_THAT(error_of("{\"a\": \"\\ud800\"}"), HasSubstr("surrogate"));
  EXPECT_THAT(error_of("{\"a\": \"line\nend\"}"), HasSubstr("control character"));
  EXPECT_LT(error_of("{\"a\": \"" + std::string(100000, 'x')).size(), 400u);
}

TEST(ReadBody, TakesNothingButAnObject) {
  EXPECT_EQ(error_of("[1]"), "the body must be a JSON object, not an array");
  EXPECT_EQ(error_of("5"), "the body must be a JSON object, not 5");
  EXPECT_EQ(error_of("null"), "the body must be a JSON object, not null");
}

TEST(ReadBody, RefusesKeysThatAreThereTwice) {
  EXPECT_EQ(error_of(R"({"a": 1, "b": 2, "a": 3})"), "the key \"a\" is there twice");
  EXPECT_EQ(error_of(R"({"x": [{"a": 1, "a": 1}]})"), "the key \"a\" is there twice");
  EXPECT_EQ(error_of(R"({"x": {"a": 1}, "y": {"a": 1}})"), "");
}

TEST(ReadBody, IsBoundedInDepthKeysAndValues) {
  EXPECT_EQ(error_of("{\"a\": " + repeated("[", 99) + repeated("]", 99) + "}"), "");
  EXPECT_EQ(error_of("{\"a\": " + repeated("[", 100) + repeated("]", 100) + "}"),
            "the body nests deeper than 100 levels");
  EXPECT_THAT(error_of("{\"a\": " + repeated("[", 1000000)), HasSubstr("deeper than 100"));
  const auto keys = [](size_t count) {
    std::string body = "{";
    for (size_t i = 0; i < count; ++i) body += (i > 0 ? ",\"k" : "\"k") + std::to_string(i) + "\":0";
    return body + "}";
  };
  EXPECT_EQ(error_of(keys(4096)), "");
  EXPECT_EQ(error_of(keys(4097)), "an object has more than 4096 keys");
  EXPECT_EQ(error_of("{\"a\": [" + keys(4096) + "," + keys(4096) + "]}"), "too many objects with many keys");
  EXPECT_EQ(error_of("{\"" + std::string(257, 'k') + "\": 1}"), "a key has more than 256 bytes");
  EXPECT_EQ(error_of("{\"a\": [" + repeated("[],", 1 << 20) + "[]]}"), "the body has too many values");
  EXPECT_EQ(error_of("{\"a\": [" + repeated("1,", 1 << 20) + "1]}"), "");
}

}  // namespace
}  // namespace whippet::openai
