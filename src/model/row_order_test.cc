#include "model/row_order.h"

#include <gtest/gtest.h>

namespace whippet {
namespace {

TEST(RowOrder, InterleavedHalvesAreTakenApart) {
  // The file keeps pairs (i, i + 2) of each head of 4 side by side: rows 0 2 1 3, 4 6 5 7.
  EXPECT_EQ(interleaved_rows(2, 4), (std::vector<int32_t>{0, 2, 1, 3, 4, 6, 5, 7}));
  // head_dim 6: the file holds halves (0 1 2 | 3 4 5) as 0 3 1 4 2 5.
  EXPECT_EQ(interleaved_rows(1, 6), (std::vector<int32_t>{0, 2, 4, 1, 3, 5}));
}

TEST(RowOrder, PackedGroupsBecomeQThenKThenV) {
  // 4 query heads over 2 groups, head_dim 1: the file holds q0 q1 k0 v0 q2 q3 k1 v1.
  EXPECT_EQ(packed_qkv_rows(4, 2, 1), (std::vector<int32_t>{0, 1, 4, 5, 2, 6, 3, 7}));
  // One group, head_dim 2: q0 q0 k k v v is in order already.
  EXPECT_EQ(packed_qkv_rows(1, 1, 2), (std::vector<int32_t>{0, 1, 2, 3, 4, 5}));
}

}  // namespace
}  // namespace whippet
