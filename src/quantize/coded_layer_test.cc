#include "quantize/coded_layer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "backend/packing.h"
#include "model/formats/format.h"
#include "tensor/dtype.h"

namespace whippet {
namespace {

constexpr int32_t kOut = 32, kIn = 96;

std::vector<float> random_weight(uint32_t seed, float mean = 0) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(mean, 1);
  std::vector<float> weight(kOut * kIn);
  for (float& value : weight) value = normal(random);
  return weight;
}

// What the reader of GPTQ files makes of the tensors.
std::vector<float> read_back(const std::vector<OwnedTensor>& tensors, const CodeGrid& grid) {
  Checkpoint checkpoint;
  checkpoint.config["quantization_config"] = {{"quant_method", "gptq"},
                                              {"bits", grid.bits},
                                              {"group_size", grid.group == 0 ? -1 : grid.group},
                                              {"checkpoint_format", "gptq"}};
  for (const OwnedTensor& tensor : tensors) checkpoint.tensors[tensor.view.name] = tensor.view;
  const Result<const Format*> format = find_format(checkpoint, "layer");
  EXPECT_TRUE(format.ok());
  const Result<LinearLayout> layout = (*format)->layout(checkpoint, "layer");
  EXPECT_TRUE(layout.ok()) << layout.error().message;
  CanonicalLinear weight;
  weight.codes_type = layout->codes;
  weight.out = layout->out;
  weight.in = layout->in;
  weight.group = layout->group;
  weight.g_idx = layout->g_idx;
  weight.storage = Buffer::host(kOut * kIn);
  weight.codes = {weight.storage.as<std::byte>(), kOut * kIn};
  weight.scale.resize(static_cast<size_t>(kOut * weight.num_groups()));
  if (layout->has_min) weight.min.resize(weight.scale.size());
  std::vector<int32_t> rows(kOut);
  std::iota(rows.begin(), rows.end(), 0);
  (*format)->decode(checkpoint, "layer", rows,
                    {weight.storage.as<std::byte>(), weight.scale.data(),
                     weight.min.empty() ? nullptr : weight.min.data()});
  std::vector<float> values;
  for (int32_t o = 0; o < kOut; ++o)
    for (int32_t i = 0; i < kIn; ++i) values.push_back(weight_value(weight, o, i));
  return values;
}

TEST(CodedLayer, WhatIsPackedIsReadBackBitForBit) {
  for (const int32_t bits : {2, 3, 4, 8}) {
    for (const int32_t group : {0, 32}) {
      for (const bool symmetric : {true, false}) {
        const CodeGrid grid{.bits = bits, .group = group, .symmetric = symmetric};
        CodedLayer layer = round_layer(random_weight(static_cast<uint32_t>(bits)), kOut, kIn, grid, 2);
        EXPECT_EQ(read_back(pack_layer("layer", layer), grid), decode_layer(layer)) << bits << " " << group;
        std::shuffle(layer.g_idx.begin(), layer.g_idx.end(), std::mt19937(7));
        EXPECT_EQ(read_back(pack_layer("layer", layer), grid), decode_layer(layer)) << bits << " shuffled";
      }
    }
  }
}

TEST(CodedLayer, RoundingLosesAtMostHalfAStep) {
  const std::vector<float> weight = random_weight(3);
  const CodeGrid grid{.bits = 8, .group = 32};
  const CodedLayer layer = round_layer(weight, kOut, kIn, grid, 1);
  const std::vector<float> decoded = decode_layer(layer);
  for (size_t i = 0; i < weight.size(); ++i) {
    const float step = f16_to_f32(layer.scale[i / kIn * 3 + i % kIn / 32]);
    // The largest of a group may lie just beyond the last code: its range is 255 steps, less the fp16
    // rounding.
    EXPECT_LE(std::abs(weight[i] - decoded[i]), step * 0.6f) << i;
  }
}

TEST(CodedLayer, NoZeroPointIsStoredAsMinusOne) {
  const CodeGrid grid{.bits = 4, .group = 32, .symmetric = false};
  const std::vector<float> weight = random_weight(5, 10);  // all positive
  const CodedLayer layer = round_layer(weight, kOut, kIn, grid, 1);
  EXPECT_EQ(*std::min_element(layer.zero.begin(), layer.zero.end()), 1);
  const std::vector<float> decoded = decode_layer(layer);
  for (size_t i = 0; i < weight.size(); ++i) EXPECT_NEAR(decoded[i], weight[i], 1.0f) << i;
}

TEST(CodedLayer, AScaleThatFp16CannotHoldIsItsLargest) {
  const std::vector<float> huge(32, 1e30f);
  EXPECT_EQ(storable_fit(huge, {.bits = 4, .group = 32}).scale, 65504);
}

TEST(CodedLayer, WhatDoesNotFillWordsIsRefusedWithANumber) {
  EXPECT_TRUE(check_packable("a", 8, 16, 4).ok());
  const Status odd = check_packable("a", 8, 36, 4);
  ASSERT_FALSE(odd.ok());
  EXPECT_EQ(odd.error().message,
            "a is [8, 36], and 4 bits pack whole words only where both are multiples of 8; try --bits 8");
  EXPECT_FALSE(check_packable("a", 12, 16, 4).ok());
  EXPECT_TRUE(check_packable("a", 12, 36, 8).ok());
}

}  // namespace
}  // namespace whippet
