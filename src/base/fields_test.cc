#include "base/fields.h"

#include <gtest/gtest.h>

namespace whippet {
namespace {

TEST(ParseInteger, TakesTheWholeRangeAndNamesItOtherwise) {
  EXPECT_EQ(*parse_integer("-3", -3, 9), -3);
  EXPECT_EQ(*parse_integer(" 9 ", -3, 9), 9);
  EXPECT_EQ(*parse_integer("+9", -3, 9), 9);
  EXPECT_EQ(parse_integer("10", -3, 9).error().message, "10 is outside the allowed range -3 to 9");
  for (const char* text : {"", "x", "1.5", "1e3", "--1", "+-1", "+", "1 2", "99999999999999999999"})
    EXPECT_EQ(parse_integer(text, -3, 9).error().message,
              fmt::format("'{}' is not a whole number from -3 to 9", text));
}

TEST(ParseUnsigned, UsesAll64Bits) {
  EXPECT_EQ(*parse_unsigned("18446744073709551615"), UINT64_MAX);
  EXPECT_FALSE(parse_unsigned("18446744073709551616").ok());
  EXPECT_FALSE(parse_unsigned("-1").ok());
}

TEST(ParseNumber, RefusesWhatIsNotFinite) {
  EXPECT_EQ(*parse_number("0.25"), 0.25);
  EXPECT_EQ(*parse_number("-1e-3"), -1e-3);
  for (const char* text : {"", "nan", "inf", "-inf", "1e999", "0.5x", "1,5"})
    EXPECT_FALSE(parse_number(text).ok()) << text;
}

TEST(ParseSwitch, KnowsTheUsualWords) {
  for (const char* text : {"true", "ON", "Yes", "1"}) EXPECT_TRUE(*parse_switch(text)) << text;
  for (const char* text : {"false", "off", "No", "0"}) EXPECT_FALSE(*parse_switch(text)) << text;
  EXPECT_FALSE(parse_switch("").ok());
  EXPECT_FALSE(parse_switch("2").ok());
}

TEST(ParseBytes, UnderstandsUnits) {
  EXPECT_EQ(*parse_bytes("0"), 0u);
  EXPECT_EQ(*parse_bytes("1073741824"), 1073741824u);
  EXPECT_EQ(*parse_bytes("24MiB"), 24u << 20);
  EXPECT_EQ(*parse_bytes("24m"), 24u << 20);
  EXPECT_EQ(*parse_bytes("2 GB"), 2000000000u);
  EXPECT_EQ(*parse_bytes("1.5GiB"), 3u << 29);
  EXPECT_EQ(*parse_bytes("7kb"), 7000u);
  EXPECT_EQ(*parse_bytes("8TiB"), uint64_t{8} << 40);
}

TEST(ParseBytes, RefusesNonsenseAndOverflow) {
  for (const char* text : {"", "MiB", "-1MiB", "1.2.3G", "12 parsecs", ".", "1e3", "99999999999TiB",
                           "99999999999.5TiB", "18446744073709551616"})
    EXPECT_FALSE(parse_bytes(text).ok()) << text;
}

TEST(BytesToText, IsReadBackAsTheSameNumber) {
  EXPECT_EQ(bytes_to_text(24 << 20), "24MiB");
  EXPECT_EQ(bytes_to_text(1000), "1000");
  for (uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{1024}, uint64_t{1} << 40, UINT64_MAX})
    EXPECT_EQ(*parse_bytes(bytes_to_text(bytes)), bytes);
}

TEST(NearestName, FindsWhatWasMeant) {
  const std::vector<std::string> names = {"max_num_seqs", "max_model_len", "seed", "top_k", "top_p"};
  EXPECT_EQ(nearest_name("max_num_seq", names), "max_num_seqs");
  EXPECT_EQ(nearest_name("MAX_MODLE_LEN", names), "max_model_len");
  EXPECT_EQ(nearest_name("sede", names), "seed");
  EXPECT_EQ(nearest_name("temperature", names), "");
  EXPECT_EQ(nearest_name("x", names), "");
  EXPECT_EQ(nearest_name("", names), "");
  EXPECT_EQ(nearest_name(std::string(100000, 'a'), names), "");
}

}  // namespace
}  // namespace whippet
