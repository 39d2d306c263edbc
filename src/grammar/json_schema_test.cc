// What grammars of JSON schemas take. Hundreds of generated schemas and an independent validator:
// tests/structured_output_test.py.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "grammar/testing.h"

namespace whippet::grammar {
namespace {

using Texts = std::initializer_list<std::string>;

void expect(const char* schema, Texts taken, Texts refused) {
  const Acceptor acceptor(json(schema));
  for (const std::string& text : taken) EXPECT_TRUE(acceptor.takes(text)) << schema << " takes " << text;
  for (const std::string& text : refused)
    EXPECT_FALSE(acceptor.takes(text)) << schema << " does not take " << text;
}

TEST(JsonSchema, MembersComeInOrderRequiredOnesAlways) {
  expect(
      R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"},"c":{"type":"boolean"}},
             "required":["b"]})",
      {R"({"b":"x"})", R"({"a":1,"b":"x"})", R"({"a": 1, "b": "x", "c": true})", R"({"b":"x","c":false})",
       "{\n  \"a\": 1,\n  \"b\": \"x\"\n}"},
      {"{}", R"({"a":1})", R"({"b":"x","a":1})", R"({"b":"x","d":1})", R"({"b":1})", R"({"b":"x",})",
       R"({"b":"x"}x)"});
  expect(R"({"properties":{"a":{"type":"null"},"b":{"type":"null"}}})",
         {"{}", R"({"a":null})", R"({"b":null})", R"({"a":null,"b":null})"},
         {R"({"b":null,"a":null})", R"({,})"});
}

TEST(JsonSchema, OtherMembersComeLastAndUnderOtherNames) {
  expect(R"({"type":"object","properties":{"ab":{"type":"integer"},"ac":{"type":"integer"}},"required":["ab"],
             "additionalProperties":{"type":"boolean"}})",
         {R"({"ab":1})", R"({"ab":1,"a":true})", R"({"ab":1,"abc":true,"x":false})",
          R"({"ab":1,"ac":2,"b":true})"},
         {R"({"ab":1,"ac":true})", R"({"ab":1,"ab":true})", R"({"ab":1,"x":2})", R"({"x":true,"ab":1})",
          R"({"ab":1,"a\u0062":true})"});
  expect(R"({"type":"object","additionalProperties":{"type":"integer"}})", {"{}", R"({"x":1,"y":2})"},
         {R"({"x":"y"})"});
  expect(R"({"type":"object"})", {"{}", R"({"x":[{"y":null}]})"}, {"[]"});
  expect(R"({"type":"object","additionalProperties":false})", {"{}"}, {R"({"x":1})"});
  expect(R"({"type":"object","required":["k"]})", {R"({"k":[1]})"}, {"{}"});
}

TEST(JsonSchema, ManyMembersKeepTheirOrderAndMayBeLeftOut) {
  std::string schema =
      R"({"type":"object","additionalProperties":{"type":"null"},"required":["m50"],"properties":{)";
  for (int i = 0; i < 100; ++i)
    schema += fmt::format(R"({}"m{}":{{"type":"integer"}})", i == 0 ? "" : ",", i);
  expect((schema + "}}").c_str(),
         {R"({"m50":1})", R"({"m0":1,"m49":1,"m50":1})", R"({"m1":1,"m50":1,"m99":1,"x":null,"y":null})",
          R"({"m50":1,"m51":2,"m85":3})", R"({"m50":1,"x":null})"},
         {"{}", R"({"m0":1})", R"({"m49":1,"m51":1})", R"({"m50":1,"m0":1})", R"({"m50":1,"m50":1})",
          R"({"x":null,"m50":1})", R"({"m50":1,"m99":1,"m51":1})", R"({"m50":1,"m100":1})"});
}

TEST(JsonSchema, NamesOfMembersThatAreKeywordsElsewhereStayApart) {
  expect(R"({"properties":{"p":{"properties":{"title":{"type":"integer"}},"required":["title"]},
             "q":{"properties":{"description":{"type":"integer"}},"required":["description"]}},
             "required":["p","q"]})",
         {R"({"p":{"title":1},"q":{"description":2}})"}, {R"({"p":{"title":1},"q":{"title":2}})"});
}

TEST(JsonSchema, KeysAreConstrainedByPatternOrPropertyNames) {
  expect(R"({"type":"object","patternProperties":{"^[a-z]+$":{"type":"integer"}}})",
         {"{}", R"({"ab":1,"c":2})"}, {R"({"A":1})", R"({"a":"x"})"});
  expect(R"({"type":"object","propertyNames":{"enum":["x","y"]},"additionalProperties":{"type":"integer"},
             "minProperties":1,"maxProperties":2})",
         {R"({"x":1})", R"({"x":1,"y":2})"}, {"{}", R"({"z":1})", R"({"x":1,"x":1,"x":1})"});
}

TEST(JsonSchema, ArraysHoldToTheirItemsAndCounts) {
  expect(R"({"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":3})",
         {"[1]", "[1,2]", "[1, 2, 3]"}, {"[]", "[1,2,3,4]", R"(["a"])", "[1,]"});
  expect(R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}]})", {R"([1,"a"])"},
         {"[1]", R"([1,"a",2])", "[]"});
  expect(R"({"type":"array","prefixItems":[{"type":"integer"}],"items":{"type":"null"},"maxItems":3})",
         {"[1]", "[1,null,null]"}, {"[1,null,null,null]", "[null]"});
  expect(R"({"type":"array"})", {"[]", R"([1,"a",[{}]])"}, {"{}"});
}

TEST(JsonSchema, StringsHoldToLengthPatternAndFormat) {
  expect(R"({"type":"string","minLength":2,"maxLength":3})",
         {R"("ab")", R"("é-€")", R"("a\n")", R"("\"\u00e9\\")"},
         {R"("a")", R"("abcd")", R"("\n")", R"("\u00e9")", R"("\n\n\n\n")", "\"a\nb\""});
  expect(R"({"type":"string","maxLength":0})", {R"("")"}, {R"("a")", R"("\n")"});
  expect(R"({"type":"string","minLength":3,"maxLength":3})", {R"("abc")"}, {R"("ab")", R"("abcd")"});
  expect(R"({"type":"string","minLength":300})", {'"' + std::string(301, 'x') + '"'},
         {'"' + std::string(299, 'x') + '"'});
  expect(R"({"type":"string","minLength":2})", {R"("ab")", R"("ab\n")", R"("abcdef")"}, {R"("a")", R"("")"});
  expect(R"({"type":"string","maxLength":300})", {R"("")", '"' + std::string(300, 'x') + '"'},
         {'"' + std::string(301, 'x') + '"'});
  expect(R"({"type":"string","pattern":"^[A-Z]{3}$"})", {R"("ABC")"}, {R"("ABc")", R"("ABCD")"});
  expect(R"({"type":"string","format":"date"})", {R"("2024-02-28")"}, {R"("2024-02-30")", R"("2024-13-01")"});
  expect(R"({"type":"string","format":"date-time"})",
         {R"("2024-02-28T23:59:01Z")", R"("2024-12-31T00:00:00.5+01:30")"},
         {R"("2024-02-28")", R"("2024-02-28T24:00:00Z")"});
  expect(R"({"type":"string","format":"uuid"})", {R"("123e4567-e89b-12d3-a456-426614174000")"}, {R"("123")"});
  expect(R"({"type":"string","format":"ipv4"})", {R"("192.168.0.1")"}, {R"("256.1.1.1")"});
  expect(R"({"type":"string"})", {R"("")", R"("a\"b\\ \u00e9 é")"},
         {"\"a\nb\"", R"("\x")", R"("\ud800")", R"("a)"});
}

TEST(JsonSchema, ConstantsAndAlternatives) {
  expect(R"({"enum":["a",1,null,{"k":[true]}]})", {R"("a")", "1", "null", R"({"k":[true]})"},
         {R"("b")", "2"});
  expect(R"({"const":"q\"\\é"})", {R"("q\"\\é")"}, {R"("q")"});
  expect(R"({"type":"string","enum":["a",1]})", {R"("a")"}, {"1"});
  expect(R"({"anyOf":[{"type":"integer"},{"type":"null"}],"default":null,"title":"T"})", {"1", "null"},
         {R"("a")"});
  expect(R"({"type":["string","null"],"maxLength":1})", {R"("a")", "null"}, {R"("ab")", "1"});
  expect(R"({"oneOf":[{"type":"integer"},{"type":"string"}]})", {"1", R"("a")"}, {"null"});
  expect(R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},
             "anyOf":[{"required":["a"]},{"required":["b"]}]})",
         {R"({"a":1})", R"({"b":1})", R"({"a":1,"b":2})"}, {"{}"});
}

TEST(JsonSchema, TheMemberThatTellsAlternativesApartIsRequired) {
  expect(R"({"oneOf":[{"properties":{"kind":{"const":"cat"},"n":{"type":"integer"}}},
                      {"properties":{"kind":{"const":"dog"},"n":{"type":"integer"}}}]})",
         {R"({"kind":"cat","n":1})", R"({"kind":"dog"})"}, {R"({"n":1})", "{}", R"({"kind":"cow"})"});
}

TEST(JsonSchema, ReferencesMayBeRecursive) {
  expect(R"({"$defs":{"node":{"type":"object","properties":{"v":{"type":"integer"},
             "next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}},"required":["v","next"]}},
             "$ref":"#/$defs/node"})",
         {R"({"v":1,"next":null})", R"({"v":1,"next":{"v":2,"next":null}})"},
         {R"({"v":1})", R"({"v":1,"next":1})"});
  expect(R"({"type":"array","items":{"$ref":"#"}})", {"[]", "[[],[[]]]"}, {"[1]"});
  expect(R"({"definitions":{"a/b":{"type":"integer"}},"properties":{"x":{"$ref":"#/definitions/a~1b"}}})",
         {R"({"x":1})"}, {R"({"x":"1"})"});
}

TEST(JsonSchema, WhatStandsBesideAReferenceOrInAllOfHoldsToo) {
  expect(
      R"({"$defs":{"s":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/s","description":"d","maxLength":1}}})",
      {R"({"a":"x"})"}, {R"({"a":"xy"})"});
  expect(R"({"allOf":[{"properties":{"a":{"type":"integer"}},"required":["a"]},
                      {"properties":{"b":{"type":"null"}},"required":["b"]}]})",
         {R"({"a":1,"b":null})"}, {R"({"a":1})", R"({"b":null})"});
}

TEST(JsonSchema, WhiteSpaceIsBounded) {
  const char* schema = R"({"properties":{"a":{"type":"integer"}},"required":["a"]})";
  const Acceptor acceptor(json(schema));
  EXPECT_TRUE(acceptor.takes("{\n    \"a\": 1\n}"));
  EXPECT_FALSE(acceptor.begins("{\n\n"));
  EXPECT_FALSE(acceptor.begins("{" + std::string("\n") + std::string(21, ' ')));
  EXPECT_FALSE(acceptor.begins("\n"));
  StructuredOutputs tight = json(schema);
  tight.disable_any_whitespace = true;
  EXPECT_TRUE(Acceptor(tight).takes(R"({"a":1})"));
  EXPECT_FALSE(Acceptor(tight).begins(R"({"a": )"));
}

TEST(JsonSchema, AnythingIsJson) {
  expect("{}", {"1", "-0.5e+3", R"([1,{"a":"b"}])", "true"}, {"", "01", "1.", "{", "nul"});
  expect("true", {"null"}, {"x"});
}

}  // namespace
}  // namespace whippet::grammar
