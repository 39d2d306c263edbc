#include "grammar/grammar_source.h"

#include <gtest/gtest.h>

#include "grammar/testing.h"

namespace whippet::grammar {
namespace {

TEST(GrammarSource, ExactlyOneKindIsAsked) {
  EXPECT_FALSE(grammar_source({}).ok());
  StructuredOutputs two = json("{}");
  two.regex = "a";
  EXPECT_FALSE(grammar_source(two).ok());
  StructuredOutputs odd = regex("a");
  odd.disable_any_whitespace = true;
  EXPECT_FALSE(grammar_source(odd).ok());
}

TEST(GrammarSource, AChoiceIsOneOfItsTexts) {
  StructuredOutputs asked;
  asked.choice = {"yes", "no", "say \"é\\\n\""};
  const Acceptor acceptor(asked);
  EXPECT_TRUE(acceptor.takes("no"));
  EXPECT_TRUE(acceptor.takes("say \"é\\\n\""));
  EXPECT_FALSE(acceptor.takes("yesno"));
  EXPECT_FALSE(acceptor.takes(""));
}

TEST(GrammarSource, JsonObjectIsAnyObject) {
  StructuredOutputs asked;
  asked.json_object = true;
  const Acceptor acceptor(asked);
  EXPECT_TRUE(acceptor.takes(R"({"a": [1, {"b": null}], "c": "d"})"));
  EXPECT_TRUE(acceptor.takes("{}"));
  EXPECT_FALSE(acceptor.takes("[]"));
  EXPECT_FALSE(acceptor.takes(R"({"a" 1})"));
}

TEST(GrammarSource, AGrammarIsTakenAsItStands) {
  StructuredOutputs asked;
  asked.grammar = "root ::= \"select \" name\nname ::= [a-z]+\n";
  EXPECT_TRUE(Acceptor(asked).takes("select abc"));
  EXPECT_FALSE(Acceptor(asked).takes("select 1"));
}

TEST(GrammarSource, SchemasAndExpressionsInAStructuralTagAreOurs) {
  StructuredOutputs asked;
  asked.structural_tag =
      R"({"type":"structural_tag","format":{"type":"tag","begin":"<f>","end":"</f>","content":
          {"type":"json_schema","json_schema":
            {"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}}}})";
  EXPECT_TRUE(Acceptor(asked).takes(R"(<f>{"a": 1}</f>)"));
  EXPECT_FALSE(Acceptor(asked).takes(R"(<f>{"a": "1"}</f>)"));
  asked.structural_tag =
      R"({"structures":[{"begin":"<f>","schema":{"type":"integer"},"end":"</f>"}],"triggers":["<f"]})";
  EXPECT_TRUE(Acceptor(asked).takes("text <f>12</f> more"));
  EXPECT_FALSE(Acceptor(asked).takes("text <f>x"));
  asked.structural_tag =
      R"({"type":"structural_tag","format":{"type":"json_schema","json_schema":{"not":{}}}})";
  const Result<GrammarSource> bad = grammar_source(asked);
  ASSERT_FALSE(bad.ok());
  EXPECT_NE(bad.error().message.find("'not'"), std::string::npos);
}

TEST(GrammarSource, WhatTheLibraryFindsWrongIsAnErrorNotAnEnd) {
  GrammarBuilder builder(byte_vocabulary());
  for (const char* text :
       {"", "root", "root ::=", "root ::= x", "root ::= \"a", "a ::= \"b\"", "root ::= [b-a]",
        "root ::= \"\\q\"", "root ::= (", "root ::= \"a\"{3,1}", "root ::= root", "::= x"}) {
    const Result<CompiledGrammar> result = builder.compile({GrammarSource::Kind::kEbnf, text});
    EXPECT_TRUE(result.ok() || result.error().code == Code::kInvalidArgument) << text;
  }
  for (const char* text :
       {"", "{}", "[]", R"({"format":{"type":"nothing"}})", R"({"format":{"type":"tag"}})"})
    EXPECT_FALSE(builder.compile({GrammarSource::Kind::kStructuralTag, text}).ok()) << text;
  EXPECT_TRUE(builder.compile({GrammarSource::Kind::kEbnf, "root ::= \"a\""}).ok());
}

}  // namespace
}  // namespace whippet::grammar
