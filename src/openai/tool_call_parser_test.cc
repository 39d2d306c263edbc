// Calls in the text of answers, and that no cut of the text changes what is found.
#include "openai/tool_call_parser.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

namespace whippet::openai {
namespace {

struct Found {
  std::string content;
  std::vector<ToolCall> calls;
  bool operator==(const Found&) const = default;
};

ToolOffer offer_of(const char* format) {
  return {.format = find_tool_format(format), .names = {"weather", "time"}};
}

Found parse(const ToolOffer& offer, const std::vector<std::string>& pieces) {
  ToolCallParser parser(offer);
  Found found;
  for (const std::string& piece : pieces) parser.push(piece, found.content, found.calls);
  parser.finish(found.content);
  return found;
}
Found hermes(const std::string& text) { return parse(offer_of("hermes"), {text}); }

constexpr const char* kParis = R"(<tool_call>
{"name": "weather", "arguments": {"city": "Paris", "days": 2}}
</tool_call>)";
const ToolCall kWeather = {"weather", R"({"city":"Paris","days":2})"};
const ToolCall kTime = {"time", "{}"};

TEST(ToolCallParser, FindsACallAndTheTextAroundIt) {
  EXPECT_EQ(hermes(kParis), (Found{"", {kWeather}}));
  EXPECT_EQ(hermes("Let me look.\n" + std::string(kParis) + "\n"), (Found{"Let me look.", {kWeather}}));
  EXPECT_EQ(hermes(std::string(kParis) + "\n" + R"(<tool_call>{"name":"time","arguments":{}}</tool_call>)"),
            (Found{"", {kWeather, kTime}}));
  EXPECT_EQ(hermes("One: " + std::string(kParis) + " Two: " + kParis + " Done. "),
            (Found{"One:\nTwo:\nDone. ", {kWeather, kWeather}}));
  EXPECT_EQ(hermes(std::string(kParis) + "\n\nHello"), (Found{"Hello", {kWeather}}));
}

TEST(ToolCallParser, ArgumentsMayBeMissingOrInATextOrUnderTheOtherName) {
  EXPECT_EQ(hermes(R"(<tool_call>{"name": "time"}</tool_call>)"), (Found{"", {kTime}}));
  EXPECT_EQ(hermes(R"(<tool_call>{"name": "time", "parameters": {}}</tool_call>)"), (Found{"", {kTime}}));
  EXPECT_EQ(
      hermes(
          R"(<tool_call>{"name": "weather", "arguments": "{\"city\": \"Paris\", \"days\": 2}"}</tool_call>)"),
      (Found{"", {kWeather}}));
  EXPECT_EQ(hermes(R"(<tool_call>[{"name": "time"}, {"name": "time", "arguments": {}}]</tool_call>)"),
            (Found{"", {kTime, kTime}}));
}

TEST(ToolCallParser, WhatIsNoCallStaysText) {
  for (const char* text : {
           "no call at all \n",
           "a <tool",
           "a < b",
           "<tool_call>",
           "<tool_call>\n",
           "</tool_call>",
           R"(<tool_call>{"name": "weather", "arguments": {"city": "Pa)",       // cut off
           R"(<tool_call>{"name": "weather", "arguments": {"city": "Paris"})",  // a brace is missing
           R"(<tool_call>{"name": "weather", "arguments": {"city": "Paris"}</tool_call>)",
           R"(<tool_call>{"name": "weather", "arguments": {city: "Paris"}}</tool_call>)",
           R"(<tool_call>{"name": "weather", "arguments": {"a": 1, "a": 2}}</tool_call>)",
           R"(<tool_call>{"name": "weather", "arguments": [1]}</tool_call>)",
           R"(<tool_call>{"name": "weather", "arguments": "Paris"}</tool_call>)",
           R"(<tool_call>{"name": "erase_disk", "arguments": {}}</tool_call>)",  // not offered
           R"(<tool_call>{"arguments": {}}</tool_call>)",
           R"(<tool_call>{"name": 5}</tool_call>)",
           R"(<tool_call>[]</tool_call>)",
           R"(<tool_call>[{"name": "time"}, 5]</tool_call>)",
           R"(<tool_call>weather("Paris")</tool_call>)",
           "<tool_call>{\"name\": \"ti\nme\"}</tool_call>",
           R"({"name": "weather", "arguments": {}})",
       }) {
    EXPECT_EQ(hermes(text), (Found{text, {}})) << text;
  }
  const std::string deep = "<tool_call>" + std::string(5000, '{');
  EXPECT_EQ(hermes(deep), (Found{deep, {}}));
}

TEST(ToolCallParser, ACallBehindOneThatIsBrokenIsFound) {
  EXPECT_EQ(hermes(R"(<tool_call>{"name": )" + std::string(kParis)),
            (Found{R"(<tool_call>{"name":)", {kWeather}}));
  EXPECT_EQ(hermes("<tool_call><tool_call>" + std::string(kParis)),
            (Found{"<tool_call><tool_call>", {kWeather}}));
}

TEST(ToolCallParser, AMarkInsideAnArgumentIsAnArgument) {
  const Found found =
      hermes(R"(<tool_call>{"name":"time","arguments":{"a":"</tool_call>\"}<tool_call>{"}}</tool_call>)");
  EXPECT_EQ(found, (Found{"", {{"time", R"({"a":"</tool_call>\"}<tool_call>{"})"}}}));
}

TEST(ToolCallParser, ACallIsGivenWhenItsObjectIsWholeAndTheAnswerMayEndThere) {
  const ToolOffer offer = offer_of("hermes");
  ToolCallParser parser(offer);
  Found found;
  parser.push(R"(<tool_call>{"name": "time", "arguments": {}})", found.content, found.calls);
  EXPECT_EQ(found, (Found{"", {kTime}}));
  parser.push("\n</tool_", found.content, found.calls);
  parser.finish(found.content);
  EXPECT_EQ(found, (Found{"", {kTime}}));
}

TEST(ToolCallParser, OneCallOnlyWhereSeveralAreNotWanted) {
  ToolOffer offer = offer_of("hermes");
  offer.several = false;
  EXPECT_EQ(parse(offer, {std::string(kParis) + "\n" + kParis}), (Found{"", {kWeather}}));
}

TEST(ToolCallParser, InternLM2) {
  const ToolOffer offer = offer_of("internlm");
  const std::string call = R"(<|action_start|><|plugin|>
{"name": "weather", "parameters": {"city": "Paris", "days": 2}})";
  EXPECT_EQ(parse(offer, {"I look.\n" + call + "<|action_end|>\n"}), (Found{"I look.", {kWeather}}));
  EXPECT_EQ(parse(offer, {call}), (Found{"", {kWeather}})) << "the token that ends it ended the answer";
  EXPECT_EQ(parse(offer, {"<|action_start|>print(1)"}), (Found{"<|action_start|>print(1)", {}}));
}

TEST(ToolCallParser, Llama3) {
  const ToolOffer offer = offer_of("llama3_json");
  const std::string call = R"({"name": "weather", "parameters": {"city": "Paris", "days": 2}})";
  EXPECT_EQ(parse(offer, {call}), (Found{"", {kWeather}}));
  EXPECT_EQ(parse(offer, {" \n" + call + "\n"}), (Found{"", {kWeather}}));
  EXPECT_EQ(parse(offer, {R"({"type": "function", )" + call.substr(1)}), (Found{"", {kWeather}}));
  EXPECT_EQ(parse(offer, {"<|python_tag|>" + call + "; " + call}), (Found{"", {kWeather, kWeather}}));
  EXPECT_EQ(parse(offer, {call + "\n" + call}), (Found{"", {kWeather, kWeather}}));
  for (const std::string& text :
       {"See: " + call, std::string(R"({"name": "weather"})"), std::string(R"([1])"),
        R"({"name": "Ann", )" + call.substr(18), std::string("<|python_tag|>print(1)")})
    EXPECT_EQ(parse(offer, {text}), (Found{text, {}})) << text;
}

TEST(ToolCallParser, AnAnswerThatIsOtherJsonStreams) {
  const ToolOffer offer = offer_of("llama3_json");
  ToolCallParser parser(offer);
  Found found;
  parser.push(R"({"title":)", found.content, found.calls);
  EXPECT_EQ(found.content, R"({"title":)");
  parser.push(R"( "name"})", found.content, found.calls);
  parser.finish(found.content);
  EXPECT_EQ(found, (Found{R"({"title": "name"})", {}}));
}

// What is pushed is said at once but for what may still become a call or stand before one.
TEST(ToolCallParser, TextIsNotHeldBackForLong) {
  const ToolOffer offer = offer_of("hermes");
  ToolCallParser parser(offer);
  Found found;
  parser.push("a <tool_ca", found.content, found.calls);
  EXPECT_EQ(found.content, "a");
  parser.push("ke", found.content, found.calls);
  EXPECT_EQ(found.content, "a <tool_cake");
}

const std::vector<std::pair<const char*, std::string>>& answers() {
  static const std::vector<std::pair<const char*, std::string>> all = {
      {"hermes", "Let me see. \n" + std::string(kParis) + "\n" + kParis + " and 你好 \n"},
      {"hermes", R"(<tool_call>{"name": )" + std::string(kParis) + "\n</tool_call> <tool_call>{\"na"},
      {"hermes",
       R"(a<b <tool_call>{"name":"time","arguments":{"a":"</tool_call>\"\\"}}</tool_call></tool_call>)"},
      {"internlm",
       "I look.\n<|action_start|><|plugin|>\n{\"name\": \"time\", \"parameters\": {}}<|action_end|>\n"},
      {"llama3_json",
       "\n{\"name\": \"time\", \"parameters\": {\"a\": [1, {}]}}; {\"name\": \"weather\", "
       "\"parameters\": {}} {\"nam\": 1} <|python_tag|>{\"name\": \"time\", \"parameters\": {}}"},
  };
  return all;
}

TEST(ToolCallParser, NoCutChangesWhatIsFound) {
  for (const auto& [format, text] : answers()) {
    const ToolOffer offer = offer_of(format);
    const Found whole = parse(offer, {text});
    EXPECT_FALSE(whole.calls.empty()) << text;
    for (size_t cut = 0; cut <= text.size(); ++cut)
      EXPECT_EQ(parse(offer, {text.substr(0, cut), text.substr(cut)}), whole) << text << " at " << cut;
    std::vector<std::string> bytes;
    for (const char byte : text) bytes.emplace_back(1, byte);
    EXPECT_EQ(parse(offer, bytes), whole) << text;
  }
}

TEST(ToolCallParser, NoCutsChangeWhatIsFoundInAnyMixture) {
  const std::vector<std::string> scraps = {"<tool_call>",
                                           "</tool_call>",
                                           "\n",
                                           " ",
                                           "{",
                                           "}",
                                           "\"",
                                           "\\",
                                           "\"name\": ",
                                           "\"time\"",
                                           ", ",
                                           "\"arguments\": {",
                                           "[",
                                           "]",
                                           "text",
                                           "<",
                                           "<tool",
                                           R"({"name": "time", "arguments": {}})",
                                           "<|python_tag|>",
                                           ";",
                                           "<|action_start|><|plugin|>",
                                           "<|action_end|>",
                                           "\"parameters\": {}"};
  std::mt19937 random(7);
  for (int i = 0; i < 6000; ++i) {
    const ToolOffer offer = offer_of(std::vector{"hermes", "internlm", "llama3_json"}[random() % 3]);
    std::string text;
    for (size_t n = random() % 14; n > 0; --n) text += scraps[random() % scraps.size()];
    std::vector<std::string> pieces;
    for (size_t at = 0; at < text.size();) {
      const size_t size = 1 + random() % 9;
      pieces.push_back(text.substr(at, size));
      at += size;
    }
    ASSERT_EQ(parse(offer, pieces), parse(offer, {text})) << text;
  }
}

}  // namespace
}  // namespace whippet::openai
