#include "serve/deliveries.h"

#include <gtest/gtest.h>

namespace whippet::serve {
namespace {

TEST(Chunk, StandsInFrontWithItsLengthOnceThatIsKnown) {
  for (const size_t size : {1u, 9u, 16u, 255u, 256u, 70000u}) {
    std::string out = "before";
    Chunk chunk(out);
    out += std::string(size, 'x');
    const size_t begin = chunk.close();
    char length[20];
    std::snprintf(length, sizeof(length), "%zx\r\n", size);
    EXPECT_EQ(out.substr(begin), length + std::string(size, 'x') + "\r\n");
    EXPECT_EQ(out.substr(0, 6), "before");
  }
}

TEST(Chunk, AnEmptyOneLeavesNothing) {
  std::string out = "before";
  Chunk chunk(out);
  const size_t begin = chunk.close();
  EXPECT_EQ(begin, out.size());
  EXPECT_EQ(out, "before");
}

TEST(Deliveries, WhatIsTakenStandsBehindWhatIsThere) {
  Deliveries all, more;
  more.bytes = "abc";
  more.items.push_back({.to = {}, .begin = 0, .end = 3});
  all.take(more);
  EXPECT_TRUE(more.empty());
  more.bytes = "defg";
  more.items.push_back({.to = {}, .begin = 1, .end = 4, .last = true});
  all.take(more);
  EXPECT_TRUE(more.empty() && more.bytes.empty());
  ASSERT_EQ(all.items.size(), 2u);
  EXPECT_EQ(all.bytes.substr(all.items[0].begin, all.items[0].end), "abc");
  EXPECT_EQ(all.bytes.substr(all.items[1].begin, all.items[1].end - all.items[1].begin), "efg");
  EXPECT_TRUE(all.items[1].last);
}

}  // namespace
}  // namespace whippet::serve
