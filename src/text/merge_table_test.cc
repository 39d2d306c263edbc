#include "text/merge_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

namespace whippet {
namespace {

using Pair = std::pair<int32_t, int32_t>;
using Rules = std::map<Pair, MergeTable::Merge>;

// Byte pair encoding as the paper has it: as often as something merges, the best leftmost pair does.
std::vector<int32_t> merge_slowly(std::vector<int32_t> symbols, const Rules& rules) {
  for (;;) {
    size_t best = symbols.size();
    MergeTable::Merge best_merge;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto rule = rules.find({symbols[i], symbols[i + 1]});
      if (rule == rules.end() || rule->second.rank >= best_merge.rank) continue;
      best = i;
      best_merge = rule->second;
    }
    if (best == symbols.size()) return symbols;
    symbols[best] = best_merge.result;
    symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(best) + 1);
  }
}

MergeTable table_of(const Rules& rules) {
  MergeTable table(rules.size());
  for (const auto& [pair, merge] : rules) table.insert(pair.first, pair.second, merge);
  return table;
}

std::vector<int32_t> merge(const MergeTable& table, std::vector<int32_t> symbols) {
  symbols.resize(table.apply(symbols));
  return symbols;
}

TEST(MergeTable, MergesTheLowestRankFirst) {
  const MergeTable table = table_of({{{1, 2}, {5, 12}}, {{2, 3}, {4, 23}}, {{1, 23}, {9, 123}}});
  EXPECT_THAT(merge(table, {1, 2, 3}), testing::ElementsAre(123));
  EXPECT_THAT(merge(table, {1, 2, 1}), testing::ElementsAre(12, 1));
  EXPECT_THAT(merge(table, {2, 3, 3}), testing::ElementsAre(23, 3));
}

TEST(MergeTable, MergesTheLeftmostOfEquals) {
  const MergeTable table = table_of({{{1, 1}, {0, 2}}});
  EXPECT_THAT(merge(table, {1, 1, 1}), testing::ElementsAre(2, 1));
}

TEST(MergeTable, ANewInsertionOfAPairReplacesTheOld) {
  MergeTable table(2);
  table.insert(1, 2, {0, 7});
  table.insert(1, 2, {0, 8});
  EXPECT_THAT(merge(table, {1, 2}), testing::ElementsAre(8));
}

TEST(MergeTable, AnEmptyTableAndEmptyWordsAreFine) {
  EXPECT_THAT(merge(MergeTable(), {3, 4}), testing::ElementsAre(3, 4));
  EXPECT_THAT(merge(MergeTable(0), {}), testing::ElementsAre());
}

// Short and long words take different ways; both must be byte pair encoding. Ranks collide on purpose.
TEST(MergeTable, AgreesWithTheDefinitionOnRandomRulesAndWords) {
  std::mt19937 random(17);
  for (int round = 0; round < 60; ++round) {
    Rules rules;
    int32_t num_symbols = 4;
    const uint32_t num_rules = 1 + random() % 60, num_ranks = 1 + random() % 40;
    for (uint32_t i = 0; i < num_rules; ++i) {
      const auto left = static_cast<int32_t>(random() % static_cast<uint32_t>(num_symbols));
      const auto right = static_cast<int32_t>(random() % static_cast<uint32_t>(num_symbols));
      const bool fresh = random() % 4 != 0;
      const int32_t result =
          fresh ? num_symbols++ : static_cast<int32_t>(random() % static_cast<uint32_t>(num_symbols));
      rules[{left, right}] = {static_cast<uint32_t>(random() % num_ranks), result};
    }
    const MergeTable table = table_of(rules);
    for (const size_t size : {2, 3, 7, 20, 47, 48, 49, 50, 100, 400}) {
      std::vector<int32_t> word(size);
      for (int32_t& symbol : word) symbol = static_cast<int32_t>(random() % 4);
      ASSERT_EQ(merge(table, word), merge_slowly(word, rules))
          << "round " << round << ", " << size << " symbols";
    }
  }
}

TEST(MergeTable, MergesAMillionSymbols) {
  Rules rules;
  for (int32_t level = 0; level < 20; ++level)
    rules[{level, level}] = {static_cast<uint32_t>(level), level + 1};
  std::vector<int32_t> word(1 << 20, 0);
  EXPECT_THAT(merge(table_of(rules), word), testing::ElementsAre(20));
}

}  // namespace
}  // namespace whippet
