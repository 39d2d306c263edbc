#include "grammar/regex_grammar.h"

#include <gtest/gtest.h>

#include "grammar/testing.h"

namespace whippet::grammar {
namespace {

void expect(const char* expression, std::initializer_list<const char*> taken,
            std::initializer_list<const char*> refused) {
  const Acceptor acceptor(regex(expression));
  for (const char* text : taken) EXPECT_TRUE(acceptor.takes(text)) << expression << " takes " << text;
  for (const char* text : refused)
    EXPECT_FALSE(acceptor.takes(text)) << expression << " does not take " << text;
}

TEST(RegexGrammar, TakesWhatTheExpressionMatches) {
  expect("abc", {"abc"}, {"", "ab", "abcd"});
  expect("^a|bc$", {"a", "bc"}, {"abc", "b"});
  expect("ab?c*", {"a", "ab", "acc", "abc"}, {"abb", "b"});
  expect("(ab){2,3}x", {"ababx", "abababx"}, {"abx", "ababababx"});
  expect("[a-c_-]+", {"a-c_"}, {"d", ""});
  expect("[^a-c]", {"d", "é", "€", "\n", "\""}, {"a", "dd"});
  expect(".\\d\\w\\s", {"x1_ ", "é9Z\t"}, {"\n1a ", "x1-a"});
  expect("\\{\\x41\\u00e9\\}", {"{Aé}"}, {"{Ae}"});
  expect("(?:yes|(?P<n>no))!", {"yes!", "no!"}, {"yesno!"});
  expect("a{,2}", {"a{,2}"}, {"a"});
  expect("(a*)*b", {"b", "aaab"}, {"a"});
  expect("[1-9][0-9]{2}-é+?", {"123-é", "999-éé"}, {"023-é", "12-é"});
}

TEST(RegexGrammar, NamesWhatIsNoRegularLanguageOrWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"(?=a)b", "(?="},          {"(a)\\1", "back reference"}, {"\\bword", "\\b"},
      {"(?i)a", "(?i"},           {"a(", "without its )"},      {"a)", "without its ("},
      {"[a", "without its ]"},    {"*a", "nothing to repeat"},  {"a**", "repetition of"},
      {"a{3,1}", "end is below"}, {"x^y", "^ inside"},          {"(a$)b", "$ inside"},
      {"a{99999}", "10000"},      {"(a{200}){200}", "10000"},   {"([a-z]|x1){0,129}", "128"},
      {"\\p{L}", "\\p"},          {"a\\", "backslash"},         {"[z-a]", "before it begins"},
      {"\xff", "UTF-8"},          {"[]", "empty class"}};
  for (const auto& [expression, why] : cases) {
    const Result<std::string> result = regex_to_grammar(expression, RegexPlace::kText);
    ASSERT_FALSE(result.ok()) << expression;
    EXPECT_NE(result.error().message.find(why), std::string::npos) << result.error().message;
  }
}

TEST(RegexGrammar, DepthIsBounded) {
  const std::string deep = std::string(5000, '(') + "a" + std::string(5000, ')');
  EXPECT_FALSE(regex_to_grammar(deep, RegexPlace::kText).ok());
}

TEST(RegexGrammar, InAJsonStringNothingIsWrittenThatJsonForbids) {
  const auto in_json = [](const char* pattern) {
    return Acceptor(json(fmt::format(R"({{"type":"string","pattern":"{}"}})", pattern)));
  };
  EXPECT_TRUE(in_json("^a.c$").takes(R"("abc")"));
  EXPECT_FALSE(in_json("^a.c$").takes(R"("a"c")"));
  EXPECT_FALSE(
      in_json("^a.c$").takes("\"a\x01"
                             "c\""));
  EXPECT_TRUE(in_json(R"(a\\\"b)").takes(R"("a\"b")"));
  EXPECT_TRUE(in_json(R"([\\\"x])").takes(R"("\"")"));
  EXPECT_TRUE(in_json(R"(a\\\\b)").takes(R"("a\\b")"));
  EXPECT_TRUE(in_json(R"(\\n)").takes(R"("\n")"));
}

}  // namespace
}  // namespace whippet::grammar
