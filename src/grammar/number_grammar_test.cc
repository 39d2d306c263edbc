#include "grammar/number_grammar.h"

#include <gtest/gtest.h>

#include "grammar/testing.h"

namespace whippet::grammar {
namespace {

TEST(NumberGrammar, AnIntegerRangeTakesExactlyWhatLiesBetween) {
  const std::pair<int, int> ranges[] = {{0, 0},  {3, 17},    {0, 255}, {99, 1001},
                                        {-5, 5}, {-120, -7}, {-1, 0},  {10, 10}};
  for (const auto& [low, high] : ranges) {
    const Acceptor acceptor(
        json(fmt::format(R"({{"type":"integer","minimum":{},"maximum":{}}})", low, high)));
    for (int i = -130; i <= 1100; ++i)
      EXPECT_EQ(acceptor.takes(std::to_string(i)), low <= i && i <= high)
          << i << " in " << low << " to " << high;
    EXPECT_FALSE(acceptor.takes("-0"));
    EXPECT_FALSE(acceptor.takes("01"));
  }
}

TEST(NumberGrammar, ExcludedAndFractionalBoundsOfIntegersRoundInwards) {
  const Acceptor excluded(json(R"({"type":"integer","exclusiveMinimum":3,"exclusiveMaximum":6})"));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(excluded.takes(std::to_string(i)), i == 4 || i == 5) << i;
  const Acceptor fractional(json(R"({"type":"integer","minimum":2.5,"exclusiveMaximum":4.5})"));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(fractional.takes(std::to_string(i)), i == 3 || i == 4) << i;
}

TEST(NumberGrammar, ANumberRangeTakesWhatLiesBetweenAndNothingElse) {
  struct Case {
    const char* schema;
    double low, high;
    bool over, under;
  };
  const Case cases[] = {
      {R"({"type":"number","minimum":0,"maximum":1})", 0, 1, false, false},
      {R"({"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1})", 0, 1, true, true},
      {R"({"type":"number","minimum":-1.5,"maximum":2.25})", -1.5, 2.25, false, false},
      {R"({"type":"number","minimum":0.25,"maximum":0.75})", 0.25, 0.75, false, false},
      {R"({"type":"number","exclusiveMinimum":0.25,"exclusiveMaximum":0.75})", 0.25, 0.75, true, true},
      {R"({"type":"number","minimum":-0.75,"exclusiveMaximum":-0.25})", -0.75, -0.25, false, true},
      {R"({"type":"number","minimum":1.05})", 1.05, 1e9, false, false},
      {R"({"type":"number","exclusiveMaximum":-3})", -1e9, -3, false, true},
      {R"({"type":"number","minimum":2,"maximum":2})", 2, 2, false, false}};
  for (const Case& one : cases) {
    const Acceptor acceptor(json(one.schema));
    for (int i = -400; i <= 400; ++i) {
      const double value = i / 80.0;
      const bool within = (one.over ? value > one.low : value >= one.low) &&
                          (one.under ? value < one.high : value <= one.high);
      const std::string text = fmt::format("{}", value);  // the shortest that reads back
      const bool plain = text != "-0" && text.find('e') == std::string::npos;
      EXPECT_TRUE(!plain || acceptor.takes(text) == within) << text << " " << one.schema;
    }
  }
}

TEST(NumberGrammar, AnEmptyRangeIsRefused) {
  EXPECT_FALSE(integer_between(3, 2).ok());
  const Bound two{.value = {.negative = false, .whole = 2, .fraction = {}}, .excluded = true};
  EXPECT_FALSE(number_between(two, two).ok());
}

TEST(NumberGrammar, MultiplesAreListedBetweenBoundsAndCountedWithoutThem) {
  const Acceptor bounded(json(R"({"type":"integer","multipleOf":7,"minimum":-20,"maximum":20})"));
  const Acceptor endless(json(R"({"type":"integer","multipleOf":7})"));
  for (int i = -20; i <= 20; ++i) {
    EXPECT_EQ(bounded.takes(std::to_string(i)), i % 7 == 0) << i;
    EXPECT_EQ(endless.takes(std::to_string(i)), i % 7 == 0) << i;
  }
  EXPECT_TRUE(endless.takes("700000000007"));
}

}  // namespace
}  // namespace whippet::grammar
