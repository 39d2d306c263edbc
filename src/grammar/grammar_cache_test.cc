#include "grammar/grammar_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "grammar/testing.h"

namespace whippet::grammar {
namespace {

StructuredOutputs word(int i) { return regex(fmt::format("word{}", i)); }

TEST(GrammarCache, TheVocabularyIsAskedForOnce) {
  std::atomic<int> asked = 0;
  GrammarCache cache(
      [&] {
        ++asked;
        return byte_vocabulary();
      },
      {});
  EXPECT_EQ(asked, 0);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(cache.get(word(i)).ok());
  EXPECT_EQ(asked, 1);
}

TEST(GrammarCache, ABadOneIsAnErrorAndTheNextIsFine) {
  GrammarCache cache(byte_vocabulary, {});
  EXPECT_TRUE(cache.get(word(1)).ok());
  StructuredOutputs bad;
  bad.grammar = "root ::= nothing";
  const auto result = cache.get(bad);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, Code::kInvalidArgument);
  EXPECT_TRUE(cache.get(word(1)).ok());
  EXPECT_TRUE(cache.get(word(2)).ok());
}

TEST(GrammarCache, ManyThreadsGetWhatTheyAskedFor) {
  GrammarCache cache(byte_vocabulary, {.bytes = 1, .waiting = 256, .patience = std::chrono::minutes(1)});
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        const int which = (i + t) % 5;
        auto grammar = cache.get(word(which));
        if (!grammar.ok()) {
          ++wrong;
          continue;
        }
        GrammarMatcher matcher = grammar->start();
        for (const char c : fmt::format("word{}", which)) wrong += !matcher.accept(c);
        wrong += !matcher.accept(kEnd);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(GrammarCache, WhoIsOutOfPatienceGetsAReason) {
  std::atomic<bool> go = false;
  GrammarCache cache(
      [&] {
        while (!go) std::this_thread::yield();
        return byte_vocabulary();
      },
      {.bytes = 1 << 20, .waiting = 1, .patience = std::chrono::milliseconds(1)});
  const auto late = cache.get(word(1));
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code, Code::kInvalidArgument);
  auto second = cache.get(word(2));  // waits, or finds the place taken
  auto third = cache.get(word(3));
  EXPECT_FALSE(second.ok());
  ASSERT_FALSE(third.ok());
  EXPECT_EQ(third.error().code, Code::kUnavailable);
  go = true;
}

}  // namespace
}  // namespace whippet::grammar
