#include "base/version.h"

#include <gtest/gtest.h>

#include <regex>
#include <string>

namespace whippet {
namespace {

TEST(Version, ReleaseIsThreeNumbers) {
  EXPECT_TRUE(std::regex_match(release(), std::regex(R"(\d+\.\d+\.\d+)"))) << release();
}

TEST(Version, CommitIsHexDigitsOrUnknown) {
  EXPECT_TRUE(std::regex_match(commit(), std::regex("[0-9a-f]{7,40}(-dirty)?|unknown"))) << commit();
}

}  // namespace
}  // namespace whippet
