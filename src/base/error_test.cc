#include "base/error.h"

#include <gtest/gtest.h>

#include <memory>

namespace whippet {
namespace {

Result<int> half(int x) {
  if (x % 2 != 0) return make_error(Code::kInvalidArgument, "{} is odd", x);
  return x / 2;
}

Result<int> quarter(int x) {
  WH_ASSIGN(const int h, half(x));
  return half(h);
}

Status check_quarter(int x) {
  WH_TRY(quarter(x));
  return {};
}

TEST(Result, HoldsAValueOrAnError) {
  EXPECT_EQ(*half(4), 2);
  ASSERT_FALSE(half(3).ok());
  EXPECT_EQ(half(3).error().code, Code::kInvalidArgument);
  EXPECT_EQ(half(3).error().message, "3 is odd");
}

TEST(Result, TryAndAssignPassTheErrorOn) {
  EXPECT_EQ(*quarter(8), 2);
  EXPECT_EQ(quarter(6).error().message, "3 is odd");
  EXPECT_TRUE(check_quarter(8).ok());
  EXPECT_FALSE(check_quarter(6).ok());
}

TEST(Result, MovesOnlyTypes) {
  Result<std::unique_ptr<int>> r(std::make_unique<int>(7));
  std::unique_ptr<int> p = std::move(r).value();
  EXPECT_EQ(*p, 7);
}

TEST(ResultDeathTest, ValueOfAnErrorIsABug) { EXPECT_DEATH(half(3).value(), "3 is odd"); }

}  // namespace
}  // namespace whippet
