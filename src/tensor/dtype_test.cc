#include "tensor/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace whippet {
namespace {

TEST(DType, EveryHalfSurvivesTheWayThroughFloat) {
  for (uint32_t h = 0; h < 0x10000; ++h) {
    const float value = f16_to_f32(static_cast<uint16_t>(h));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(value))));
    } else {
      EXPECT_EQ(f32_to_f16(value), h);
    }
  }
}

TEST(DType, HalfRoundsToNearestEven) {
  for (uint32_t h = 0; h < 0x7bff; ++h) {  // between each pair of neighbours, subnormals included
    const float low = f16_to_f32(static_cast<uint16_t>(h));
    const float high = f16_to_f32(static_cast<uint16_t>(h + 1));
    const float middle = low + (high - low) / 2;
    EXPECT_EQ(f32_to_f16(middle), h % 2 == 0 ? h : h + 1) << h;
    EXPECT_EQ(f32_to_f16(std::nextafter(middle, 0.0f)), h) << h;
    EXPECT_EQ(f32_to_f16(std::nextafter(middle, 1e9f)), h + 1) << h;
  }
  EXPECT_EQ(f32_to_f16(65519.0f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(-1e30f), 0xfc00);
}

TEST(DType, Bf16RoundsToNearestEvenAndKeepsNan) {
  for (uint32_t b = 0; b < 0x10000; ++b) {
    const float value = bf16_to_f32(static_cast<uint16_t>(b));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(value))));
    } else {
      EXPECT_EQ(f32_to_bf16(value), b);
    }
  }
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f808000u)), 0x3f80);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f818000u)), 0x3f82);
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7f80);
}

}  // namespace
}  // namespace whippet
