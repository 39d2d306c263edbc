#include "engine/stop_checker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace whippet {
namespace {

// One token a spelling; "Ã" and "©" are the two bytes of "é" in the byte-level alphabet.
Tokenizer make_tokenizer(std::vector<std::string> tokens) {
  Vocabulary vocabulary;
  vocabulary.tokens = std::move(tokens);
  vocabulary.types.assign(vocabulary.tokens.size(), TokenType::kNormal);
  vocabulary.types.back() = TokenType::kControl;
  auto tokenizer = Tokenizer::create(std::move(vocabulary));
  WH_CHECK(tokenizer.ok(), "{}", tokenizer.error().message);
  return std::move(tokenizer).value();
}

const std::vector<std::string> kTokens = {"a",   "b",   "S",   "T",   "O", "P", "ab",
                                          "STO", "TOP", "xST", "OPy", "Ã", "©", "<end>"};

struct Outcome {
  std::string text;
  std::vector<std::string> pieces;
  std::vector<int32_t> released;  // tokens counted out after each push
  std::string matched;
};

class StopCheckerTest : public testing::Test {
 protected:
  Outcome run(const std::vector<std::string>& spellings, const SamplingParams& params,
              size_t min_tokens = 0) {
    StopChecker checker(tokenizer_, params);
    Outcome out;
    const auto take = [&] {
      out.pieces.push_back(checker.take_text());
      out.text += out.pieces.back();
      out.released.push_back(checker.take_released_tokens());
    };
    for (size_t i = 0; i < spellings.size(); ++i) {
      const auto id = static_cast<int32_t>(std::ranges::find(kTokens, spellings[i]) - kTokens.begin());
      if (spellings[i] == "<end>") {
        checker.push_end(id);
      } else if (!checker.push(id, i + 1 >= min_tokens)) {
        take();
        continue;
      }
      break;
    }
    checker.finish();
    take();
    out.matched = checker.matched();
    return out;
  }

  Tokenizer tokenizer_ = make_tokenizer(kTokens);
};

SamplingParams stopping_at(std::vector<std::string> stops, bool include = false) {
  SamplingParams params;
  params.stop = std::move(stops);
  params.include_stop_str_in_output = include;
  return params;
}

TEST_F(StopCheckerTest, FindsAStopAcrossTokensAndNeverLeaksAPartOfIt) {
  const Outcome out = run({"a", "S", "TOP", "b"}, stopping_at({"STOP"}));
  EXPECT_EQ(out.text, "a");
  EXPECT_EQ(out.matched, "STOP");
  EXPECT_EQ(out.pieces, (std::vector<std::string>{"a", "", ""}));
  EXPECT_EQ(out.released, (std::vector<int32_t>{1, 0, 2}));  // tokens are held with their text
}

TEST_F(StopCheckerTest, CutsInsideATokenOnBothSides) {
  EXPECT_EQ(run({"b", "xST", "OPy"}, stopping_at({"STOP"})).text, "bx");
  EXPECT_EQ(run({"b", "xST", "OPy"}, stopping_at({"STOP"}, true)).text, "bxSTOP");
}

TEST_F(StopCheckerTest, ReleasesWhatTurnsOutToBeNoStop) {
  const Outcome out = run({"S", "T", "a", "b"}, stopping_at({"STOP"}));
  EXPECT_EQ(out.pieces, (std::vector<std::string>{"", "", "STa", "b", ""}));
  EXPECT_EQ(out.released, (std::vector<int32_t>{0, 0, 3, 1, 0}));
  EXPECT_EQ(out.matched, "");
}

TEST_F(StopCheckerTest, FallsBackInsideItsOwnPrefix) {
  EXPECT_EQ(run({"a", "a", "a", "b"}, stopping_at({"aab"})).text, "a");
  EXPECT_EQ(run({"S", "STO", "P"}, stopping_at({"STOP"})).text, "S");
}

TEST_F(StopCheckerTest, TheEarliestEndWinsAndThenTheLongest) {
  EXPECT_EQ(run({"TOP", "a"}, stopping_at({"OPa", "OP", "TO"})).matched, "TO");
  EXPECT_EQ(run({"TOP"}, stopping_at({"P", "OP", "TOP"})).matched, "TOP");
}

TEST_F(StopCheckerTest, TheEndReleasesWhatWasHeld) {
  EXPECT_EQ(run({"a", "STO"}, stopping_at({"STOP"})).text, "aSTO");
  const Outcome ended = run({"a", "STO", "<end>"}, stopping_at({"STOP"}));
  EXPECT_EQ(ended.text, "aSTO");
  EXPECT_EQ(ended.released.back(), 2);
  SamplingParams shown = stopping_at({"STOP"}, true);
  shown.skip_special_tokens = false;
  EXPECT_EQ(run({"a", "<end>"}, shown).text, "a<end>");
}

TEST_F(StopCheckerTest, MinTokensLetsEarlyStopsPass) {
  EXPECT_EQ(run({"STO", "P", "a", "STO", "P"}, stopping_at({"STOP"}), 3).text, "STOPa");
}

TEST_F(StopCheckerTest, StopsOfSeveralBytesAndHalfCharacters) {
  EXPECT_EQ(run({"a", "Ã", "©", "b"}, stopping_at({"é"})).text, "a");
  EXPECT_EQ(run({"a", "Ã", "b"}, stopping_at({"é"})).text,
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(run({"a", "Ã"}, stopping_at({"é"})).text, "a\xEF\xBF\xBD");
}

// Against a search in the whole text, over random tokens and stops.
TEST_F(StopCheckerTest, AgreesWithASearchInTheWholeText) {
  std::mt19937 random(5);
  const auto pick = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  int32_t matches = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    std::vector<std::string> spellings, stops;
    std::string whole;
    for (size_t i = pick(12) + 1; i > 0; --i) {
      spellings.push_back(kTokens[pick(11)]);
      whole += spellings.back();
    }
    for (size_t i = pick(3) + 1; i > 0; --i) {
      std::string stop;
      for (size_t k = pick(4) + 1; k > 0; --k) stop.push_back("abSTOP"[pick(6)]);
      stops.push_back(stop);
    }
    const bool include = pick(2) == 1;
    const Outcome out = run(spellings, stopping_at(stops, include));
    size_t best_end = std::string::npos, best_size = 0;
    for (const std::string& stop : stops) {
      const size_t at = whole.find(stop);
      if (at == std::string::npos) continue;
      const size_t end = at + stop.size();
      if (end < best_end || (end == best_end && stop.size() > best_size))
        best_end = end, best_size = stop.size();
    }
    if (best_end == std::string::npos) {
      ASSERT_EQ(out.text, whole);
      ASSERT_EQ(out.matched, "");
      continue;
    }
    ++matches;
    ASSERT_EQ(out.matched.size(), best_size);
    ASSERT_EQ(out.text, whole.substr(0, include ? best_end : best_end - best_size));
    // What went out before the end never reached into the stop string.
    std::string streamed;
    for (size_t i = 0; i + 1 < out.pieces.size(); ++i) streamed += out.pieces[i];
    ASSERT_LE(streamed.size(), best_end - best_size);
  }
  EXPECT_GT(matches, 500);
}

}  // namespace
}  // namespace whippet
