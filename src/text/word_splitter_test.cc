#include "text/word_splitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "text/utf8.h"

namespace whippet {
namespace {

using testing::ElementsAre;

std::vector<std::string> split(PreTokenizer kind, std::string_view text) {
  const WordSplitter splitter(kind);
  std::vector<std::string> words;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = splitter.word_end(text, begin);
    EXPECT_GT(end, begin);
    if (end <= begin) break;
    words.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

TEST(WordSplitter, Gpt2KeepsTheSpaceWithTheWord) {
  EXPECT_THAT(split(PreTokenizer::kGpt2, "Hello  world's 123abc!?\n\n x"),
              ElementsAre("Hello", " ", " world", "'s", " 123", "abc", "!?", "\n\n", " x"));
  EXPECT_THAT(split(PreTokenizer::kGpt2, "it'S  "), ElementsAre("it", "'", "S", "  "));
}

TEST(WordSplitter, SmolLmIsolatesEveryNumber) {
  EXPECT_THAT(split(PreTokenizer::kSmolLm, "a  12\u00BD  x"),
              ElementsAre("a", "  ", "1", "2", "\u00BD", " ", " x"));
}

TEST(WordSplitter, Qwen2TakesOneSignWithTheLettersAndNewlinesWithSigns) {
  EXPECT_THAT(split(PreTokenizer::kQwen2, "it'S (foo)\r\n\n 12  y"),
              ElementsAre("it", "'S", " (", "foo", ")\r\n\n", " ", "1", "2", " ", " y"));
  EXPECT_THAT(split(PreTokenizer::kQwen2, " \n  \n  x\t"), ElementsAre(" \n  \n", " ", " x", "\t"));
  EXPECT_THAT(split(PreTokenizer::kQwen2, "a'\u017Fb"), ElementsAre("a", "'\u017F", "b"));
}

TEST(WordSplitter, Llama3TakesUpToThreeDigits) {
  EXPECT_THAT(split(PreTokenizer::kLlama3, "1234567 89"), ElementsAre("123", "456", "7", " ", "89"));
}

TEST(WordSplitter, NoneLeavesTheTextWhole) {
  EXPECT_THAT(split(PreTokenizer::kNone, "a b 1"), ElementsAre("a b 1"));
}

// The expressions by definition: alternatives in order, each as a function from a position to the end of its
// match (or the position itself for none). Slow and literal; works on classes, one letter a character.
class Expression {
 public:
  // L letter, N number, S other space, B blank, R CR or LF, ' apostrophe, s/l lowercase letters, o other
  explicit Expression(std::string text) : text_(std::move(text)) {}

  bool letter(size_t i) const { return in(i, "Lsl"); }
  bool number(size_t i) const { return in(i, "N"); }
  bool space(size_t i) const { return in(i, "SBR"); }
  bool newline(size_t i) const { return in(i, "R"); }
  bool other(size_t i) const { return in(i, "o'"); }
  bool at(size_t i, char c) const { return i < text_.size() && text_[i] == c; }
  size_t size() const { return text_.size(); }
  size_t run(size_t i, bool (Expression::*of)(size_t) const) const {
    while (i < size() && (this->*of)(i)) ++i;
    return i;
  }

  size_t contraction(size_t i) const {
    if (!at(i, '\'')) return i;
    if (at(i + 1, 's')) return i + 2;
    return at(i + 1, 'l') && at(i + 2, 'l') ? i + 3 : i;
  }
  size_t spaces(size_t i) const {
    const size_t end = run(i, &Expression::space);
    return end == size() || end == i + 1 ? end : end == i ? i : end - 1;
  }
  size_t gpt2(size_t i) const {
    if (contraction(i) > i) return contraction(i);
    const size_t body = at(i, 'B') ? i + 1 : i;
    for (const auto of : {&Expression::letter, &Expression::number, &Expression::other}) {
      if (run(body, of) > body) return run(body, of);
    }
    return spaces(i);
  }
  size_t qwen2(size_t i, size_t max_digits) const {
    if (contraction(i) > i) return contraction(i);
    const size_t body = !letter(i) && !number(i) && !newline(i) ? i + 1 : i;
    if (run(body, &Expression::letter) > body) return run(body, &Expression::letter);
    if (number(i)) return std::min(run(i, &Expression::number), i + max_digits);
    const size_t sign = at(i, 'B') ? i + 1 : i;
    if (run(sign, &Expression::other) > sign) return run(run(sign, &Expression::other), &Expression::newline);
    for (size_t end = run(i, &Expression::space); end > i; --end) {
      if (newline(end - 1)) return end;
    }
    return spaces(i);
  }

 private:
  bool in(size_t i, const char* set) const {
    return i < size() && std::string_view(set).find(text_[i]) != std::string::npos;
  }
  std::string text_;
};

std::string spell(const std::string& classes, std::mt19937& random) {
  std::string text;
  for (const char c : classes) {
    const char32_t letters[] = {'x', 'Q', 0xE9, 0x4F60}, numbers[] = {'7', 0xBD, 0x663};
    const char32_t spaces[] = {'\t', 0xA0, 0x3000, 0x85}, others[] = {'!', 0x301, 0x1F600, 0x1C, 0x2581};
    switch (c) {
      case 'L':
        append_utf8(text, letters[random() % 4]);
        break;
      case 'N':
        append_utf8(text, numbers[random() % 3]);
        break;
      case 'S':
        append_utf8(text, spaces[random() % 4]);
        break;
      case 'B':
        text += ' ';
        break;
      case 'R':
        text += random() % 2 == 0 ? '\n' : '\r';
        break;
      case 'o':
        append_utf8(text, others[random() % 5]);
        break;
      default:
        text += c;
    }
  }
  return text;
}

size_t num_characters(const std::string& text) {
  size_t count = 0;
  for (size_t at = 0; at < text.size(); ++count)
    at += decode_utf8(text.data() + at, text.data() + text.size()).size;
  return count;
}

void compare(PreTokenizer kind, const std::function<size_t(const Expression&, size_t)>& word_end) {
  std::mt19937 random(11);
  for (int i = 0; i < 20000; ++i) {
    std::string classes;
    for (size_t n = 1 + random() % 14; n > 0; --n) classes += "LLNSBBRo'sl"[random() % 11];
    const std::string text = spell(classes, random);
    std::vector<size_t> expected, found;
    const Expression expression(classes);
    for (size_t at = 0; at < classes.size(); expected.push_back(at)) at = word_end(expression, at);
    size_t at = 0;
    for (const std::string& word : split(kind, text)) found.push_back(at += num_characters(word));
    ASSERT_EQ(found, expected) << classes << " as " << text;
  }
}

TEST(WordSplitter, AgreesWithTheExpressionsOnRandomText) {
  compare(PreTokenizer::kGpt2, [](const Expression& text, size_t at) { return text.gpt2(at); });
  compare(PreTokenizer::kQwen2, [](const Expression& text, size_t at) { return text.qwen2(at, 1); });
  compare(PreTokenizer::kLlama3, [](const Expression& text, size_t at) { return text.qwen2(at, 3); });
}

TEST(WordSplitter, WordsTileAnyBytes) {
  std::mt19937 random(5);
  for (int i = 0; i < 5000; ++i) {
    std::string bytes;
    for (size_t n = random() % 30; n > 0; --n)
      bytes += static_cast<char>(random() % 2 == 0 ? random() : "' \nas1"[random() % 6]);
    for (const auto kind :
         {PreTokenizer::kGpt2, PreTokenizer::kSmolLm, PreTokenizer::kQwen2, PreTokenizer::kLlama3}) {
      std::string joined;
      for (const std::string& word : split(kind, bytes)) joined += word;
      ASSERT_EQ(joined, bytes);
    }
  }
}

}  // namespace
}  // namespace whippet
