#include "text/pattern_matcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace whippet {
namespace {

using testing::ElementsAre;

// The matches as "begin-end:id".
std::vector<std::string> find(const PatternMatcher& matcher, std::string_view text,
                              std::vector<TextSpan> spans = {}) {
  std::vector<std::string> found;
  for (const auto& match : matcher.find_all(text, spans)) {
    found.push_back(std::to_string(match.begin) + "-" + std::to_string(match.end) + ":" +
                    std::to_string(match.id));
  }
  return found;
}

TEST(PatternMatcher, FindsTheLeftmostThenTheLongest) {
  const PatternMatcher matcher({{.text = "<a", .id = 1}, {.text = "<a>", .id = 2}, {.text = "a>b", .id = 3}});
  EXPECT_THAT(find(matcher, "x<a>b<ax"), ElementsAre("1-4:2", "5-7:1"));
  EXPECT_THAT(find(matcher, "a>b"), ElementsAre("0-3:3"));
  EXPECT_THAT(find(matcher, ""), ElementsAre());
}

TEST(PatternMatcher, GuardedPatternsNeverTouchAUserSpan) {
  const PatternMatcher matcher({{.text = "<a>", .id = 1, .guarded = true}});
  EXPECT_THAT(find(matcher, "<a>", {{0, 3}}), ElementsAre());
  EXPECT_THAT(find(matcher, "<a>", {{2, 3}}), ElementsAre()) << "the template's beginning, the user's end";
  EXPECT_THAT(find(matcher, "<a>", {{0, 1}}), ElementsAre());
  EXPECT_THAT(find(matcher, "<a>", {{1, 2}}), ElementsAre());
  EXPECT_THAT(find(matcher, "u<a>u<a>", {{0, 1}, {4, 5}}), ElementsAre("1-4:1", "5-8:1"))
      << "neighbours do not touch";
}

TEST(PatternMatcher, UsersCannotUnmakeATokenByWritingBehindIt) {
  const PatternMatcher matcher({{.text = "<a>", .id = 1, .guarded = true},
                                {.text = "<a>b", .id = 2, .guarded = true},
                                {.text = "<a>cc", .id = 3}});
  EXPECT_THAT(find(matcher, "<a>b", {{3, 4}}), ElementsAre("0-3:1"));
  EXPECT_THAT(find(matcher, "<a>b"), ElementsAre("0-4:2"));
  EXPECT_THAT(find(matcher, "<a>cc", {{3, 5}}), ElementsAre("0-5:3")) << "ordinary text may go across";
}

TEST(PatternMatcher, StripsSpacesAndWantsWholeWords) {
  const PatternMatcher matcher({{.text = "<l>", .id = 1, .lstrip = true},
                                {.text = "<r>", .id = 2, .rstrip = true},
                                {.text = "word", .id = 3, .single_word = true}});
  EXPECT_THAT(find(matcher, "a \t<l> b"), ElementsAre("1-6:1"));
  EXPECT_THAT(find(matcher, "a<r>\u3000 b"), ElementsAre("1-8:2"));
  EXPECT_THAT(find(matcher, "<r>  <l>"), ElementsAre("0-5:2", "5-8:1"));
  EXPECT_THAT(find(matcher, "word words sword _word word!\u00E9word"), ElementsAre("0-4:3", "23-27:3"));
}

TEST(PatternMatcher, TellsMarkupFromText) {
  for (const char* markup : {"<|im_end|>", "</s>", "[UNUSED_TOKEN_145]", "<a>"})
    EXPECT_TRUE(is_markup(markup));
  for (const char* text : {"\uFF21", "  ", "\u2014\u2014", "<>", "", "a>", "[x"})
    EXPECT_FALSE(is_markup(text));
}

// By definition: at each position the longest pattern that may match there.
TEST(PatternMatcher, AgreesWithTheDefinitionOnRandomPatterns) {
  std::mt19937 random(23);
  const auto word = [&](size_t longest) {
    std::string text;
    for (size_t n = 1 + random() % longest; n > 0; --n) text += static_cast<char>("ab\xFF"[random() % 3]);
    return text;
  };
  for (int round = 0; round < 5000; ++round) {
    std::vector<PatternMatcher::Pattern> patterns;
    for (size_t n = 1 + random() % 6; n > 0; --n) {
      const std::string text = word(5);
      const auto same = [&](const auto& pattern) { return pattern.text == text; };
      if (std::any_of(patterns.begin(), patterns.end(), same)) continue;
      patterns.push_back({.text = text, .id = static_cast<int32_t>(n), .guarded = random() % 2 == 0});
    }
    const std::string text = word(20);
    std::vector<TextSpan> spans;
    for (size_t at = random() % 6; at < text.size(); at += 2 + random() % 6) {
      const size_t end = std::min(text.size(), at + 1 + random() % 4);
      spans.push_back({at, end});
      at = end;
    }
    std::vector<std::string> expected;
    for (size_t at = 0; at < text.size();) {
      const PatternMatcher::Pattern* best = nullptr;
      for (const auto& pattern : patterns) {
        if (text.compare(at, pattern.text.size(), pattern.text) != 0) continue;
        const auto touches = [&](const TextSpan& span) {
          return span.begin < at + pattern.text.size() && span.end > at;
        };
        if (pattern.guarded && std::any_of(spans.begin(), spans.end(), touches)) continue;
        if (best == nullptr || pattern.text.size() > best->text.size()) best = &pattern;
      }
      if (best == nullptr) {
        ++at;
        continue;
      }
      const size_t end = at + best->text.size();
      expected.push_back(std::to_string(at) + "-" + std::to_string(end) + ":" + std::to_string(best->id));
      at = end;
    }
    ASSERT_EQ(find(PatternMatcher(patterns), text, spans), expected);
  }
}

}  // namespace
}  // namespace whippet
