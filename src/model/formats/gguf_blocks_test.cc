#include "model/formats/gguf_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <numeric>

#include "base/mapped_file.h"
#include "model/formats/format.h"
#include "model/gguf.h"
#include "model/safetensors.h"

namespace whippet {
namespace {

using Codes = CanonicalLinear::Codes;

// What a tensor of the test data decodes to, row by row.
struct Decoded {
  LinearLayout layout;
  std::vector<std::byte> codes;
  std::vector<float> scale;
  std::vector<float> min;

  float value(size_t row, size_t column) const {
    const size_t at = row * static_cast<size_t>(layout.in) + column;
    switch (layout.codes) {
      case Codes::kF32: {
        float value;
        std::memcpy(&value, codes.data() + at * 4, 4);
        return value;
      }
      case Codes::kF16:
      case Codes::kBF16: {
        uint16_t bits;
        std::memcpy(&bits, codes.data() + at * 2, 2);
        return layout.codes == Codes::kF16 ? f16_to_f32(bits) : bf16_to_f32(bits);
      }
      case Codes::kU4:
      case Codes::kI8:
        break;
    }
    const auto code = static_cast<float>(layout.codes == Codes::kU4 ? std::to_integer<int>(codes[at])
                                                                    : std::to_integer<int8_t>(codes[at]));
    const size_t group = (row * static_cast<size_t>(layout.in) + column) / static_cast<size_t>(layout.group);
    const float product = code * scale[group];
    return layout.has_min ? product + min[group] : product;
  }
};

Decoded decode(const Checkpoint& checkpoint, const std::string& layer, std::vector<int32_t> rows) {
  const Result<const Format*> format = find_format(checkpoint, layer);
  EXPECT_TRUE(format.ok()) << format.error().message;
  Result<LinearLayout> layout = (*format)->layout(checkpoint, layer);
  EXPECT_TRUE(layout.ok()) << layout.error().message;
  Decoded out;
  out.layout = *layout;
  const size_t elements = rows.size() * static_cast<size_t>(layout->in);
  const size_t groups = layout->group == 0 ? 0 : elements / static_cast<size_t>(layout->group);
  out.codes.resize(elements * code_bytes(layout->codes));
  out.scale.resize(groups);
  if (layout->has_min) out.min.resize(groups);
  (*format)->decode(checkpoint, layer, rows,
                    {out.codes.data(), out.scale.data(), out.min.empty() ? nullptr : out.min.data()});
  return out;
}

class GgufBlocks : public testing::Test {
 protected:
  void SetUp() override {
    const std::string folder = WHIPPET_SOURCE_DIR "/tests/data/gguf/types/";
    Result<MappedFile> gguf = MappedFile::open(folder + "types.gguf");
    ASSERT_TRUE(gguf.ok()) << gguf.error().message;
    gguf_ = std::move(*gguf);
    Result<MappedFile> expected = MappedFile::open(folder + "expected.safetensors");
    ASSERT_TRUE(expected.ok()) << expected.error().message;
    expected_file_ = std::move(*expected);
    Result<GgufFile> file = parse_gguf(gguf_.bytes(), "types.gguf");
    ASSERT_TRUE(file.ok()) << file.error().message;
    for (TensorView& tensor : file->tensors) checkpoint_.tensors[tensor.name] = tensor;
    Result<std::vector<TensorView>> tensors = parse_safetensors(expected_file_.bytes(), "expected");
    ASSERT_TRUE(tensors.ok()) << tensors.error().message;
    for (TensorView& tensor : *tensors) expected_[tensor.name] = tensor;
  }

  float expected(const std::string& layer, size_t at) const {
    float value;
    std::memcpy(&value, expected_.at(layer + ".weight").data.data() + at * 4, 4);
    return value;
  }

  MappedFile gguf_;
  MappedFile expected_file_;
  Checkpoint checkpoint_;
  std::map<std::string, TensorView> expected_;
};

TEST_F(GgufBlocks, EveryTypeDecodesExactly) {
  for (const char* layer :
       {"F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K"}) {
    const Decoded decoded = decode(checkpoint_, layer, {0, 1});
    ASSERT_EQ(decoded.layout.out, 2);
    ASSERT_EQ(decoded.layout.in, 512);
    for (size_t row = 0; row < 2; ++row) {
      for (size_t column = 0; column < 512; ++column) {
        ASSERT_EQ(decoded.value(row, column), expected(layer, row * 512 + column))
            << layer << " [" << row << ", " << column << "]";
      }
    }
  }
}

TEST_F(GgufBlocks, FourBitsBecomeU4AndMoreBecomeI8) {
  const std::map<std::string, std::tuple<Codes, int32_t, bool>> layouts = {
      {"Q4_0", {Codes::kU4, 32, true}}, {"Q4_1", {Codes::kU4, 32, true}},  {"Q5_0", {Codes::kI8, 32, false}},
      {"Q5_1", {Codes::kI8, 32, true}}, {"Q8_0", {Codes::kI8, 32, false}}, {"Q4_K", {Codes::kU4, 32, true}},
      {"Q5_K", {Codes::kI8, 32, true}}, {"Q6_K", {Codes::kI8, 16, false}}, {"F32", {Codes::kF32, 0, false}},
      {"F16", {Codes::kF16, 0, false}}, {"BF16", {Codes::kBF16, 0, false}}};
  for (const auto& [layer, expected] : layouts) {
    const LinearLayout layout = decode(checkpoint_, layer, {0}).layout;
    EXPECT_EQ(std::tuple(layout.codes, layout.group, layout.has_min), expected) << layer;
  }
}

TEST_F(GgufBlocks, RowsComeInTheOrderThatIsAsked) {
  for (const char* layer : {"F16", "Q4_1", "Q6_K"}) {
    const Decoded decoded = decode(checkpoint_, layer, {1, 0, 1});
    for (size_t column = 0; column < 512; ++column) {
      ASSERT_EQ(decoded.value(0, column), expected(layer, 512 + column));
      ASSERT_EQ(decoded.value(1, column), expected(layer, column));
      ASSERT_EQ(decoded.value(2, column), expected(layer, 512 + column));
    }
  }
}

TEST(Format, LayersThatNothingReadsAreNamed) {
  Checkpoint checkpoint;
  checkpoint.tensors["a.weight"] = {"a.weight", StorageType::kOther, "IQ4_NL", {1, 32}, {}};
  checkpoint.tensors["q.qweight"] = {"q.qweight", StorageType::kI32, "I32", {1, 32}, {}};
  checkpoint.tensors["q.scales"] = {"q.scales", StorageType::kF16, "F16", {1, 32}, {}};
  checkpoint.tensors["v.weight"] = {"v.weight", StorageType::kF16, "F16", {32}, {}};
  const auto a = find_format(checkpoint, "a");
  ASSERT_FALSE(a.ok());
  EXPECT_EQ(a.error().code, Code::kUnsupported);
  EXPECT_THAT(a.error().message, testing::HasSubstr("a.weight is stored as IQ4_NL"));
  const auto q = find_format(checkpoint, "q");
  ASSERT_FALSE(q.ok());
  EXPECT_EQ(q.error().code, Code::kUnsupported);
  EXPECT_THAT(q.error().message, testing::HasSubstr("q is stored as qweight, scales"));
  EXPECT_EQ(find_format(checkpoint, "none").error().code, Code::kNotFound);
  const auto v = find_format(checkpoint, "v");
  ASSERT_TRUE(v.ok());
  EXPECT_THAT((*v)->layout(checkpoint, "v").error().message, testing::HasSubstr("expected a matrix"));
}

}  // namespace
}  // namespace whippet
