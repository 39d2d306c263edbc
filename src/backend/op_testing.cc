#include "backend/op_testing.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "backend/on_host.h"

namespace whippet::testing {
namespace {

constexpr uint32_t kGuardBits = 0x7fedbeef;  // a NaN that no op makes

}  // namespace

std::vector<std::string> tested_backends() {
  std::vector<std::string> names = supported_isas();
  if (make_backend("cuda", {}).ok()) names.emplace_back("cuda");
  return names;
}

std::unique_ptr<Backend> tested_backend(const std::string& name, int32_t threads) {
  BackendOptions options;
  if (name == "cuda") {
    options.deterministic = true;
    return std::make_unique<OnHost>(make_backend("cuda", options).value());
  }
  options.num_threads = threads;
  options.isa = name;
  return make_backend("cpu", options).value();
}

TestMat::TestMat(int32_t rows, int32_t cols, int32_t gap)
    : rows_(rows),
      cols_(cols),
      stride_(cols + gap),
      values_(2 * kGuard + static_cast<size_t>(rows) * (cols + gap), std::bit_cast<float>(kGuardBits)) {
  for (int32_t r = 0; r < rows; ++r)
    for (int32_t c = 0; c < cols; ++c) at(r, c) = std::numeric_limits<float>::quiet_NaN();
}

TestMat TestMat::random(Random& random, int32_t rows, int32_t cols, int32_t gap, float scale) {
  TestMat made(rows, cols, gap);
  std::normal_distribution<float> normal(0, scale);
  for (int32_t r = 0; r < rows; ++r)
    for (int32_t c = 0; c < cols; ++c) made.at(r, c) = normal(random);
  return made;
}

bool TestMat::is_guard(size_t index) const {
  const auto i = static_cast<int64_t>(index) - kGuard;
  return i < 0 || i >= static_cast<int64_t>(rows_) * stride_ || i % stride_ >= cols_;
}

bool TestMat::intact() const {
  for (size_t i = 0; i < values_.size(); ++i)
    if (is_guard(i) && std::bit_cast<uint32_t>(values_[i]) != kGuardBits) return false;
  return true;
}

bool same_bits(float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }

void expect_same_bits(const TestMat& a, const TestMat& b, const std::string& what) {
  ASSERT_EQ(a.rows(), b.rows());
  ASSERT_EQ(a.cols(), b.cols());
  for (int32_t r = 0; r < a.rows(); ++r)
    for (int32_t c = 0; c < a.cols(); ++c)
      ASSERT_TRUE(same_bits(a.at(r, c), b.at(r, c)))
          << what << " at [" << r << ", " << c << "]: " << a.at(r, c) << " and " << b.at(r, c);
}

std::string WeightShape::name() const {
  static constexpr const char* kNames[] = {"f32", "f16", "bf16", "u4", "i8"};
  std::string text = std::string(kNames[static_cast<int>(codes)]) + " [" + std::to_string(out) + ", " +
                     std::to_string(in) + "]";
  if (group > 0) text += " g" + std::to_string(group);
  if (with_min) text += " min";
  if (half_factors) text += " half";
  if (symmetric) text += " symmetric";
  if (with_bias) text += " bias";
  if (order != Order::kNone) text += order == Order::kPermuted ? " permuted" : " uneven";
  return text;
}

CanonicalLinear random_weight(Random& random, const WeightShape& shape) {
  using Codes = CanonicalLinear::Codes;
  CanonicalLinear w;
  w.codes_type = shape.codes;
  w.out = shape.out;
  w.in = shape.in;
  w.group = shape.group;
  const size_t elements = static_cast<size_t>(shape.out) * shape.in;
  const size_t width = shape.codes == Codes::kF32 ? 4 : w.dense() ? 2 : 1;
  w.storage = Buffer::host(elements * width + 1);
  auto* codes = w.storage.as<std::byte>() + 1;  // views into files are not aligned
  w.codes = {codes, elements * width};
  std::normal_distribution<float> normal(0, 0.5f);
  for (size_t i = 0; i < elements; ++i) {
    const float value = normal(random);
    const uint16_t half = shape.codes == Codes::kF16 ? f32_to_f16(value) : f32_to_bf16(value);
    const auto byte = static_cast<uint8_t>(shape.codes == Codes::kU4 ? random() % 16 : random() % 256);
    std::memcpy(codes + i * width,
                width == 4   ? static_cast<const void*>(&value)
                : width == 2 ? static_cast<const void*>(&half)
                             : static_cast<const void*>(&byte),
                width);
  }
  if (shape.with_bias)
    for (int32_t o = 0; o < shape.out; ++o) w.bias.push_back(normal(random));
  if (w.dense()) return w;
  const size_t scales = static_cast<size_t>(shape.out) * w.num_groups();
  const auto factor = [&](float value) { return shape.half_factors ? f16_to_f32(f32_to_f16(value)) : value; };
  for (size_t i = 0; i < scales; ++i) w.scale.push_back(factor(0.02f + 0.02f * std::abs(normal(random))));
  for (size_t i = 0; i < scales && shape.with_min; ++i)
    w.min.push_back(shape.symmetric ? -8 * w.scale[i] : factor(-0.3f + 0.1f * normal(random)));
  if (shape.order == WeightShape::Order::kNone) return w;
  for (int32_t i = 0; i < shape.in; ++i)
    w.g_idx.push_back(shape.order == WeightShape::Order::kPermuted
                          ? i / shape.group
                          : static_cast<int32_t>(random() % static_cast<uint64_t>(w.num_groups())));
  std::shuffle(w.g_idx.begin(), w.g_idx.end(), random);
  return w;
}

}  // namespace whippet::testing
