// The thinking of answers and what follows it, however the text is cut.
#include "openai/reasoning_parser.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace whippet::openai {
namespace {

using Parts = std::pair<std::string, std::string>;  // thinking, answer

Parts parse(Thinking thinking, const std::vector<std::string>& pieces) {
  ReasoningParser parser(thinking);
  Parts parts;
  for (const std::string& piece : pieces) parser.push(piece, parts.first, parts.second);
  parser.finish(parts.first, parts.second);
  EXPECT_FALSE(parser.thinking());
  return parts;
}

TEST(ReasoningParser, PartsThinkingThatTheModelOpens) {
  EXPECT_EQ(parse(Thinking::kMay, {"<think>\nHm, 2 < 3.\n</think>\n\nYes. "}), Parts("Hm, 2 < 3.", "Yes. "));
  EXPECT_EQ(parse(Thinking::kMay, {"\n <think>a</think>b</think>"}), Parts("a", "b</think>"));
  EXPECT_EQ(parse(Thinking::kMay, {"<think>\n\n</think>\n\nYes."}), Parts("", "Yes."));
  EXPECT_EQ(parse(Thinking::kMay, {"<think>a <think> b</think>c"}), Parts("a <think> b", "c"));
}

TEST(ReasoningParser, PartsThinkingThatThePromptHasOpened) {
  EXPECT_EQ(parse(Thinking::kOpen, {"Hm.\n</think>\n\nYes."}), Parts("Hm.", "Yes."));
  EXPECT_EQ(parse(Thinking::kOpen, {"<think>\nHm.</think>Yes."}), Parts("Hm.", "Yes.")) << "opened twice";
  EXPECT_EQ(parse(Thinking::kOpen, {"</think>Yes."}), Parts("", "Yes."));
}

TEST(ReasoningParser, ThinkingThatIsNeverClosedIsAllThinking) {
  EXPECT_EQ(parse(Thinking::kMay, {"<think>a b </thi"}), Parts("a b </thi", ""));
  EXPECT_EQ(parse(Thinking::kOpen, {" a\n"}), Parts("a", ""));
  EXPECT_EQ(parse(Thinking::kOpen, {}), Parts("", ""));
}

TEST(ReasoningParser, AnAnswerWithoutThinkingIsLeftAsItIs) {
  for (const char* text : {"", " \n", "Yes.\n", " <thin", "a<think>b</think>c", "\n</think>"}) {
    EXPECT_EQ(parse(Thinking::kMay, {text}), Parts("", text)) << text;
    EXPECT_EQ(parse(Thinking::kNever, {text}), Parts("", text)) << text;
  }
  EXPECT_EQ(parse(Thinking::kNever, {"<think>a</think>"}), Parts("", "<think>a</think>"));
}

TEST(ReasoningParser, TheEndOfThePromptTells) {
  EXPECT_EQ(thinking_after("assistant\n"), Thinking::kMay);
  EXPECT_EQ(thinking_after("assistant\n<think>\n"), Thinking::kOpen);
  EXPECT_EQ(thinking_after("assistant\n<think>\n\n</think>\n\n"), Thinking::kNever);
  EXPECT_EQ(thinking_after("user: <think> assistant"), Thinking::kMay);
  EXPECT_EQ(thinking_after(""), Thinking::kMay);
}

TEST(ReasoningParser, NoCutChangesTheParts) {
  for (const char* text : {"<think>\nHm, a < b </thin </think>\n\n</think> Yes.\n", "\n<think> </think>",
                           "  no thinking <think>", "<think>\n never closed </think", "x</think>\n y "}) {
    const std::string all = text;
    for (const Thinking thinking : {Thinking::kNever, Thinking::kMay, Thinking::kOpen}) {
      const Parts whole = parse(thinking, {all});
      std::vector<std::string> bytes;
      for (size_t cut = 0; cut < all.size(); ++cut) {
        EXPECT_EQ(parse(thinking, {all.substr(0, cut), all.substr(cut)}), whole) << text << " at " << cut;
        bytes.push_back(all.substr(cut, 1));
      }
      EXPECT_EQ(parse(thinking, bytes), whole) << text;
    }
  }
}

TEST(ReasoningParser, ThinkingStreams) {
  ReasoningParser parser(Thinking::kMay);
  std::string reasoning, answer;
  parser.push("<think>\nfirst second", reasoning, answer);
  EXPECT_TRUE(parser.opened());
  EXPECT_TRUE(parser.thinking());
  EXPECT_EQ(reasoning, "first second");
  parser.push(" </", reasoning, answer);
  EXPECT_EQ(reasoning, "first second");
  parser.push("think>", reasoning, answer);
  EXPECT_FALSE(parser.thinking());
}

}  // namespace
}  // namespace whippet::openai
