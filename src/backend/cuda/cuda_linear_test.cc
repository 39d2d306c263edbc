// Products with activations of 16 bits: every kernel and format, and what is fused to them.
#include <algorithm>
#include <cmath>

#include "backend/cuda/cuda_testing.h"
#include "backend/reference.h"

namespace whippet::testing {
namespace {

using Codes = CanonicalLinear::Codes;

class CudaLinear : public CudaHalf {
 protected:
  void check_linear(const WeightShape& shape, const std::vector<int32_t>& all_rows);
  void check_logits(const WeightShape& shape, const std::vector<int32_t>& all_rows);
  void check_exactly(const WeightShape& shape);
  struct Widths {
    int32_t hidden, inner;
    float norm;  // its weights are up to this: fp16 has no room for outputs of thousands
  };
  void check_neighbours(const WeightShape& sort, int32_t rows, Widths widths = {896, 4864, 1});
};

// sum |x w| bounds what fp32 sums lose; the result is rounded once.
void expect_product(const TestMat& actual, const TestMat& expected, TestMat& x, const CanonicalLinear& w,
                    double unit, const std::string& what) {
  const std::vector<float> values = reference::dequantise(w);
  std::vector<double> norms(static_cast<size_t>(w.out), 0.0);
  for (int32_t o = 0; o < w.out; ++o)
    for (int32_t i = 0; i < w.in; ++i) {
      const double value =
          values[static_cast<size_t>(o) * static_cast<size_t>(w.in) + static_cast<size_t>(i)];
      norms[static_cast<size_t>(o)] += value * value;
    }
  // Weights that are dequantised to 16 bits are off by a rounding each, of random sign: 8 standard
  // deviations.
  const double weight_unit = w.dense() ? 0 : 8 * unit;
  for (int32_t r = 0; r < expected.rows(); ++r) {
    double norm = 0;
    for (int32_t i = 0; i < w.in; ++i) norm += std::pow(x.at(r, i), 2);
    for (int32_t o = 0; o < w.out; ++o) {
      const double bias =
          w.bias.empty() ? 0 : std::abs(w.bias[static_cast<size_t>(o)]);    // added to a rounded sum
      const double most = std::sqrt(norm * norms[static_cast<size_t>(o)]);  // >= sum |x w| (Cauchy-Schwarz)
      const double size = std::sqrt(norm * norms[static_cast<size_t>(o)] / w.in);
      const double bound = 0x1p-22 * std::sqrt(w.in) * most + weight_unit * size +
                           2 * unit * (std::abs(expected.at(r, o)) + bias) + 1e-6;
      ASSERT_LE(std::abs(static_cast<double>(actual.at(r, o)) - expected.at(r, o)), bound)
          << what << " at [" << r << ", " << o << "]: " << actual.at(r, o) << ", expected "
          << expected.at(r, o);
    }
  }
}

void CudaLinear::check_linear(const WeightShape& shape, const std::vector<int32_t>& all_rows) {
  if (HasFatalFailure()) return;
  CanonicalLinear w = random_weight(random_, shape);
  for (float& bias : w.bias) bias = rounded(bias);
  const LinearWeight packed = on_host_->pack(w, ComputeType::kAuto).value();
  for (const int32_t rows : all_rows) {
    if (shape.out > 30000 && rows > 9 && rows != 33) continue;
    TestMat x = random_mat(rows, shape.in, shape.in % 8 == 0 ? 8 : 3), expected(rows, shape.out),
            actual(rows, shape.out);
    reference::linear(x.mat(), w, expected.mat());
    on_host_->linear(x.mat(), packed, actual.mat());
    expect_product(actual, expected, x, w, unit(), shape.name() + " " + std::to_string(rows) + " rows");
    if (HasFatalFailure()) return;
  }
}

TEST_P(CudaLinear, LinearAgreesWithTheReference) {
  const Codes own = codes();
  const std::vector<WeightShape> shapes = {
      {.codes = own, .out = 896, .in = 896, .with_bias = true},
      {.codes = own, .out = 40, .in = 4864},
      {.codes = own, .out = 83, .in = 100, .with_bias = true},
      {.codes = own, .out = 4300, .in = 96},
      {.codes = own, .out = 34001, .in = 64},
      {.codes = own, .out = 5, .in = 2560},
      {.codes = Codes::kU4, .out = 100, .in = 576, .group = 32, .with_min = true, .with_bias = true},
      {.codes = Codes::kI8, .out = 70, .in = 448, .group = 128, .order = WeightShape::Order::kUneven}};
  for (const WeightShape& shape : shapes) check_linear(shape, {1, 3, 8, 9, 16, 17, 32, 33, 70});
}

// Blocks of 8 rows and of 16, of one tile and of several; weights that are numbers before the inputs come (up
// to five cells of a warp, up to eight tiles) and those that are not; codes that a warp streams through a
// ring; inputs that leave room for fewer rows at a time; groups of every size, and weights without a scale of
// their own.
TEST_P(CudaLinear, LinearInCodesAgreesWithTheReference) {
  for (const Codes in_codes : {Codes::kI8, Codes::kU4}) {
    for (const bool min : {false, true}) {
      for (const int32_t group : {32, 64, 128, 256, 896}) {
        const WeightShape narrow{.codes = in_codes, .out = 301, .in = 896, .group = group, .with_min = min};
        WeightShape broad = narrow;
        broad.out = 2400 + group, broad.with_bias = true;
        check_linear(narrow, {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 70});
        if (group < 256) check_linear(broad, {1, 5, 8, 9});
      }
      check_linear({.codes = in_codes, .out = 83, .in = 4864, .group = 128, .with_min = min},
                   {1, 7, 8, 9, 17});
      check_linear({.codes = in_codes, .out = 9, .in = 4864, .group = 32, .with_min = min, .with_bias = true},
                   {1, 2, 8, 16});
      if (!min || in_codes == Codes::kU4) {
        const bool symmetric = min;
        for (const int32_t in : {128, 1024, 1152, 3072, 5120})
          check_linear({.codes = in_codes,
                        .out = 95,
                        .in = in,
                        .group = 128,
                        .with_min = min,
                        .with_bias = true,
                        .symmetric = symmetric},
                       {1, 2, 8});
        for (const int32_t out : {1100, 4300, 9728})
          check_linear({.codes = in_codes,
                        .out = out,
                        .in = 1024,
                        .group = 128,
                        .with_min = min,
                        .symmetric = symmetric},
                       {1, 8});
      }
      if (min == (in_codes == Codes::kU4)) {
        check_linear({.codes = in_codes, .out = 2048, .in = 8192, .group = 8192, .with_min = min}, {1, 8});
        check_linear({.codes = in_codes, .out = 17001, .in = 1408, .group = 64, .with_min = min}, {1, 3, 9});
      }
      check_linear({.codes = in_codes,
                    .out = 140,
                    .in = 512,
                    .group = 128,
                    .with_min = min,
                    .order = WeightShape::Order::kPermuted},
                   {1, 8, 9, 70});
    }
  }
  for (const int32_t group : {32, 128})
    check_linear(
        {.codes = Codes::kU4, .out = 2401, .in = 896, .group = group, .with_min = true, .symmetric = true},
        {1, 4, 9, 33});
}

// Weights that no block has room for: tiles of 8 rows and of 16, of whole stages and with a last one of fewer
// columns (for some warps none), a last tile of fewer rows, more tiles a block than sums at a time.
TEST_P(CudaLinear, LinearOfMoreWeightsThanSharedMemoryAgreesWithTheReference) {
  const std::vector<WeightShape> shapes = {{.codes = codes(), .out = 2043, .in = 8192, .with_bias = true},
                                           {.codes = codes(), .out = 1500, .in = 8960},
                                           {.codes = codes(), .out = 4301, .in = 5760, .with_bias = true},
                                           {.codes = codes(), .out = 20003, .in = 1024, .with_bias = true},
                                           {.codes = codes(), .out = 24001, .in = 128}};
  for (const WeightShape& shape : shapes) check_linear(shape, {1, 3, 8});
}

// Logits are fp32.
void CudaLinear::check_logits(const WeightShape& shape, const std::vector<int32_t>& all_rows) {
  if (HasFatalFailure()) return;
  const int32_t out = shape.out;
  CanonicalLinear w = random_weight(random_, shape);
  const LinearWeight packed = device_->pack(w, ComputeType::kAuto).value();
  for (const int32_t rows : all_rows) {
    TestMat x = random_mat(rows, shape.in), expected(rows, out), actual(rows, out);
    reference::linear(x.mat(), w, expected.mat());
    const OnDevice on_device(*device_, x);
    std::vector<float> read(static_cast<size_t>(rows) * static_cast<size_t>(out));
    const Buffer logits = device_->allocate(read.size() * 4);
    device_->linear(on_device.mat(), packed, logits.mat(DType::kF32, rows, out));
    device_->copy_to_host(read.data(), logits.as<void>(), read.size() * 4);
    for (int32_t r = 0; r < rows; ++r)
      for (int32_t o = 0; o < out; ++o) actual.at(r, o) = read[static_cast<size_t>(r * out + o)];
    expect_product(actual, expected, x, w, unit(), std::to_string(rows) + " rows of logits");
    if (HasFatalFailure()) return;
  }
}

TEST_P(CudaLinear, LogitsAgreeWithTheReference) {
  check_logits({.codes = codes(), .out = 34001, .in = 896}, {1, 2, 7, 8, 9});
  check_logits({.codes = codes(), .out = 1501, .in = 2048}, {1, 8});
}

TEST_P(CudaLinear, LogitsFromCodesAgreeWithTheReference) {
  for (const Codes in_codes : {Codes::kI8, Codes::kU4})
    check_logits({.codes = in_codes, .out = 1501, .in = 896, .group = 128, .with_min = true}, {1, 8, 9, 20});
}

// Inputs of 1 in one column each: every weight comes out as it is, which is a number of the type.
void CudaLinear::check_exactly(const WeightShape& shape) {
  CanonicalLinear w = random_weight(random_, shape);
  for (float& scale : w.scale) scale = scale < 0.03f ? 0.25f : 0.5f;
  for (size_t i = 0; i < w.min.size(); ++i) w.min[i] = shape.symmetric ? -8 * w.scale[i] : -2;
  const LinearWeight packed = on_host_->pack(w, ComputeType::kAuto).value();
  const std::vector<float> values = reference::dequantise(w);
  for (int32_t first = 0; first < shape.in; first += 8) {
    TestMat x(8, shape.in), actual(8, shape.out);
    for (int32_t r = 0; r < 8; ++r)
      for (int32_t c = 0; c < shape.in; ++c) x.at(r, c) = c == first + r ? 1.0f : 0.0f;
    on_host_->linear(x.mat(), packed, actual.mat());
    for (int32_t r = 0; r < 8; ++r)
      for (int32_t o = 0; o < shape.out; ++o) {
        const auto at =
            static_cast<size_t>(o) * static_cast<size_t>(shape.in) + static_cast<size_t>(first + r);
        ASSERT_EQ(actual.at(r, o), values[at]) << shape.name() << " at [" << o << ", " << first + r << "]";
      }
  }
}

TEST_P(CudaLinear, CodesAreReadExactly) {
  for (const Codes in_codes : {Codes::kI8, Codes::kU4})
    for (const bool min : {false, true})
      for (const int32_t out : {300, 2500, 17500}) {
        check_exactly({.codes = in_codes, .out = out, .in = 384, .group = 32, .with_min = min});
        if (HasFatalFailure()) return;
        check_exactly({.codes = in_codes,
                       .out = out,
                       .in = 384,
                       .group = 384,
                       .with_min = min,
                       .symmetric = min && in_codes == Codes::kU4});
        if (HasFatalFailure()) return;
      }
}
void expect_close(const TestMat& actual, const TestMat& expected, double unit, const std::string& what) {
  double square = 0;
  for (int32_t r = 0; r < expected.rows(); ++r)
    for (int32_t c = 0; c < expected.cols(); ++c) square += std::pow(expected.at(r, c), 2);
  const double size = std::sqrt(square / expected.rows() / expected.cols());
  const auto bound = [&](int32_t r, int32_t c) { return 8 * unit * (std::abs(expected.at(r, c)) + size); };
  expect_within(actual, expected, bound, what);
}

// The sequence that a layer of a decoder runs, twice: once with a look at every result in between, which
// keeps ops apart, and once without, which fuses what can be fused. Everything written must be the same to
// rounding.
TEST_P(CudaLinear, NeighboursGiveTheSameTogetherAsApart) {
  for (const int32_t rows : {1, 5, 12, 32, 40}) check_neighbours({.codes = codes()}, rows);
}

TEST_P(CudaLinear, NeighboursOfCodesGiveTheSameTogetherAsApart) {
  for (const int32_t rows : {1, 2, 8, 9, 40}) {
    check_neighbours({.codes = Codes::kI8, .group = 1 << 16}, rows);
    check_neighbours({.codes = Codes::kU4, .group = 128, .with_min = true, .symmetric = true}, rows);
    check_neighbours({.codes = Codes::kU4, .group = 32, .with_min = true}, rows);
  }
}

// No block has room for its weights.
TEST_P(CudaLinear, NeighboursOfLargeLayersGiveTheSameTogetherAsApart) {
  for (const int32_t rows : {1, 2, 8}) {
    check_neighbours({.codes = codes()}, rows, {2048, 8192, 0.125f});
    check_neighbours({.codes = codes()}, rows, {1664, 9088, 0.125f});
  }
}

void CudaLinear::check_neighbours(const WeightShape& sort, int32_t rows, Widths widths) {
  const int32_t hidden = widths.hidden, inner = widths.inner;
  TestMat x0 = random_mat(rows, hidden), zeros = random_mat(rows, hidden, 0, 0),
          wide = random_mat(rows, 2 * inner), narrow = random_mat(rows, inner);
  TestMat norm_weight = TestMat::random(random_, 1, hidden, 0, widths.norm);
  const size_t norm_bytes = static_cast<size_t>(hidden) * 4;
  Buffer norm = device_->allocate(norm_bytes);
  device_->copy_to_device(norm.as<void>(), norm_weight.mat().data, norm_bytes);
  const auto weight = [&](int32_t out, int32_t in) {
    WeightShape shape = sort;
    shape.out = out, shape.in = in, shape.with_bias = true;
    shape.group = std::min(shape.group, in);
    CanonicalLinear made = random_weight(random_, shape);
    for (float& scale : made.scale) scale /= 16;  // fp16 has no room for outputs of thousands
    for (float& min : made.min) min /= 16;
    return device_->pack(made, ComputeType::kAuto).value();
  };
  const LinearWeight up = weight(2 * inner, hidden), down = weight(hidden, inner);
  std::vector<TestMat> results[2];
  for (const bool apart : {true, false}) {
    OnDevice x(*device_, x0), normed(*device_, zeros), gate_up(*device_, wide), gated(*device_, narrow);
    const auto look = [&] {
      if (apart) x.read();
    };
    device_->rms_norm(x.mat(), norm.as<float>(), hidden, 1e-5f, normed.mat());
    look();
    device_->linear(normed.mat(), up, gate_up.mat());
    look();
    device_->silu_mul(gate_up.mat(), gated.mat());
    look();
    device_->linear(gated.mat(), down, normed.mat());
    look();
    device_->add(normed.mat(), x.mat());
    for (const OnDevice* each : {&x, &normed, &gate_up, &gated}) results[apart].push_back(each->read());
  }
  for (size_t i = 0; i < results[0].size(); ++i) {
    expect_close(results[0][i], results[1][i], unit(),
                 std::to_string(rows) + " rows, output " + std::to_string(i));
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CudaLinear, half_types(), half_name);

}  // namespace
}  // namespace whippet::testing
