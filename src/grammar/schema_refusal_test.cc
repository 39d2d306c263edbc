// What cannot be held to is refused by name and place; nothing of this needs the grammar library.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "grammar/grammar_checks.h"
#include "grammar/schema_grammar.h"

namespace whippet::grammar {
namespace {

std::string refusal(const std::string& schema) {
  Rules rules(kMostRules, kMostGrammarBytes);
  const Result<std::string> result = schema_to_grammar(schema, true, rules);
  return result.ok() ? "" : result.error().message;
}

TEST(SchemaRefusal, NamesTheKeywordAndItsPlace) {
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {R"({"not":{}})", "'not'", "at #:"},
      {R"({"properties":{"tags":{"type":"array","uniqueItems":true}}})", "'uniqueItems'",
       "#/properties/tags"},
      {R"({"type":"array","contains":{}})", "'contains'", "#"},
      {R"({"if":{},"then":{}})", "'if'", "#"},
      {R"({"type":"array","items":[{}]})", "'items'", "prefixItems"},
      {R"({"type":"number","multipleOf":0.1})", "'multipleOf'", "integers"},
      {R"({"type":"string","format":"iri"})", "'format'", "date-time"},
      {R"({"type":"string","pattern":"(?=x"})", "'pattern'", "(?="},
      {R"({"type":"string","pattern":"a","minLength":1})", "'minLength'", "pattern"},
      {R"({"type":"integer","minimum":3,"maximum":2})", "'maximum'", "#"},
      {R"({"type":"integer","minimum":"3"})", "'minimum'", "number"},
      {R"({"type":"strin"})", "'type'", "string"},
      {R"({"type":"string","maxLength":1000000})", "'maxLength'", "10000"},
      {R"({"type":"array","minItems":-1})", "'minItems'", "0 or more"},
      {R"({"oneOf":[{"type":"string"},{"maxLength":3,"type":"string"}]})", "'oneOf'", "anyOf"},
      {R"({"enum":[]})", "'enum'", "list"},
      {R"({"enum":["a"],"minLength":3})", "'minLength'", "enum"},
      {R"({"$ref":"http://example.com/x"})", "'$ref'", "within"},
      {R"({"$ref":"#/$defs/none"})", "'$ref'", "nothing at"},
      {R"({"$ref":"#"})", "'$ref'", "itself"},
      {R"({"anyOf":[{"$ref":"#"}]})", "'$ref'", "itself"},
      {R"({"allOf":[{"$ref":"#"}]})", "'allOf'", "itself"},
      {R"({"allOf":[{"type":"string"},{"type":"null"}]})", "'allOf'", "type"},
      {R"({"type":"object","properties":{"a":{}},"required":["b"],"additionalProperties":false})",
       "'required'", "'b'"},
      {R"({"type":"object","properties":{"a":{}},"minProperties":1})", "'minProperties'", "#"},
      {R"({"type":"object","patternProperties":{"a":{},"b":{}}})", "'patternProperties'", "one pattern"},
      {R"({"properties":{"a":false}})", "false", "#/properties/a"},
      {R"({"properties":3})", "'properties'", "object"},
      {R"(["a"])", "expected an object", "#"},
      {R"({"a")", "no JSON", ""},
      {R"({"type":"null","nullable":true})", "'nullable'", "#"}};
  for (const auto& [schema, keyword, more] : cases) {
    const std::string message = refusal(schema);
    EXPECT_NE(message.find(keyword), std::string::npos) << schema << ": " << message;
    EXPECT_NE(message.find(more), std::string::npos) << schema << ": " << message;
  }
}

TEST(SchemaRefusal, AnnotationsAndUnknownWordsSayNothing) {
  EXPECT_EQ(refusal(R"({"$schema":"x","$id":"y","title":"t","description":"d","default":1,"examples":[1],
                        "deprecated":true,"x-mine":3,"contentMediaType":"a/b","type":"string",
                        "format":"binary"})"),
            "");
}

TEST(SchemaRefusal, SizeAndDepthAreBounded) {
  std::string deep;
  for (int i = 0; i < 80; ++i) deep += R"({"items":)";
  EXPECT_NE(refusal(deep + "{}" + std::string(80, '}')).find("levels deep"), std::string::npos);
  EXPECT_NE(refusal(std::string(200'000, '[')).find("JSON schema"), std::string::npos);
  EXPECT_NE(refusal(std::string(100'000, '[')).find("too deep"), std::string::npos);
  // Each definition names the next twice: 2^40 parts for whoever copies them.
  std::string doubling = R"({"$ref":"#/$defs/d0","$defs":{)";
  for (int i = 0; i < 40; ++i)
    doubling +=
        fmt::format(R"("d{0}":{{"allOf":[{{"$ref":"#/$defs/d{1}"}},{{"$ref":"#/$defs/d{1}"}}]}},)", i, i + 1);
  EXPECT_NE(refusal(doubling + R"("d40":{"type":"null"}}})").find("too many parts"), std::string::npos);
}

TEST(SchemaRefusal, TheSizeOfALargeSchemasGrammarIsCounted) {
  std::string many, all;
  for (int i = 0; i < 4500; ++i) {
    many += fmt::format(R"({}"{}":{{"const":1}})", i == 0 ? "" : ",", i);
    all += fmt::format(R"({}"{}")", i == 0 ? "" : ",", i);
  }
  const std::string open = R"({"type":"object","properties":{)" + many + "}";
  EXPECT_NE(refusal(open + "}").find("a grammar of more than 524288 bytes"), std::string::npos);
  EXPECT_NE(refusal(open + R"(,"required":[)" + all + "]}").find("grammar rules"), std::string::npos);
}

TEST(EbnfCheck, BoundsSizeDepthAndRepetitions) {
  EXPECT_TRUE(check_ebnf("root ::= \"a\"{3} (\"b{99999}\" [{99999}])* # {99999}\n").ok());
  EXPECT_FALSE(check_ebnf("root ::= \"a\"{99999}").ok());
  EXPECT_FALSE(check_ebnf("root ::= (\"a\"{200} \"b\"){200}").ok());
  EXPECT_FALSE(check_ebnf("root ::= " + std::string(200, '(')).ok());
  EXPECT_FALSE(check_ebnf(std::string(100'000, 'a')).ok());
  for (const char* end : {"\"", "\"\\", "[", "[\\", "#", "(", ")", "{", "{1", "\\"}) {
    const std::string cut = "root ::= \"a text that is longer than a short string\" " + std::string(end);
    const std::vector<char> exact(cut.begin(), cut.end());  // nothing behind it may be read
    EXPECT_TRUE(check_ebnf({exact.data(), exact.size()}).ok()) << end;
  }
  EXPECT_FALSE(check_ebnf(std::string("root ::= \"a\"\0", 13)).ok());
}

}  // namespace
}  // namespace whippet::grammar
