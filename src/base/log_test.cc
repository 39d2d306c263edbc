#include "base/log.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace whippet {
namespace {

TEST(Log, LevelsParseByName) {
  EXPECT_EQ(*parse_log_level("warning"), LogLevel::kWarning);
  EXPECT_EQ(parse_log_level("loud").error().code, Code::kInvalidArgument);
}

TEST(Log, JsonLinesSurviveQuotesAndBrokenUtf8) {
  testing::internal::CaptureStderr();
  init_log({.level = LogLevel::kInfo, .json = true});
  log_debug("hidden");
  log_info("a \"quoted\"\nline \xff");
  const std::string out = testing::internal::GetCapturedStderr();
  ASSERT_EQ(std::count(out.begin(), out.end(), '\n'), 1) << out;
  const auto line = nlohmann::json::parse(out);
  EXPECT_EQ(line["level"], "info");
  EXPECT_EQ(line["message"], "a \"quoted\"\nline \xef\xbf\xbd");
}

}  // namespace
}  // namespace whippet
