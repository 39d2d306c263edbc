#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/op_testing.h"
#include "backend/reference.h"

namespace whippet::testing {
namespace {

using Codes = CanonicalLinear::Codes;
using Order = WeightShape::Order;

class Linear : public ::testing::TestWithParam<std::string> {};

std::vector<WeightShape> shapes() {
  std::vector<WeightShape> all;
  for (Codes codes : {Codes::kF32, Codes::kF16, Codes::kBF16}) {
    all.push_back({.codes = codes, .out = 1, .in = 1});
    all.push_back({.codes = codes, .out = 64, .in = 64, .with_bias = true});
    all.push_back({.codes = codes, .out = 83, .in = 577, .with_bias = true});
    all.push_back({.codes = codes, .out = 150, .in = 1101});
  }
  for (Codes codes : {Codes::kU4, Codes::kI8}) {
    for (bool min : {false, true}) {
      all.push_back({.codes = codes, .out = 5, .in = 7, .group = 7, .with_min = min});
      all.push_back({.codes = codes, .out = 64, .in = 576, .group = 32, .with_min = min, .with_bias = true});
      all.push_back({.codes = codes, .out = 100, .in = 96, .group = 16, .with_min = min});
      all.push_back({.codes = codes, .out = 33, .in = 200, .group = 64, .with_min = min, .with_bias = true});
      all.push_back({.codes = codes, .out = 129, .in = 1101, .group = 128, .with_min = min});
      all.push_back({.codes = codes, .out = 48, .in = 301, .group = 301, .with_min = min});
      all.push_back({.codes = codes, .out = 20, .in = 45, .group = 5, .with_min = min});
      all.push_back({.codes = codes, .out = 17, .in = 1300, .group = 1300, .with_min = min});
      all.push_back({.codes = codes, .out = 17, .in = 1900, .group = 800, .with_min = min});
      all.push_back(
          {.codes = codes, .out = 90, .in = 288, .group = 32, .with_min = min, .half_factors = true});
      all.push_back({.codes = codes, .out = 35, .in = 2048, .group = 512, .with_min = min});
      for (Order order : {Order::kPermuted, Order::kUneven})
        all.push_back({.codes = codes, .out = 70, .in = 448, .group = 128, .with_min = min, .order = order});
    }
  }
  all.push_back(
      {.codes = Codes::kU4, .out = 67, .in = 320, .group = 64, .with_min = true, .symmetric = true});
  all.push_back({.codes = Codes::kU4,
                 .out = 112,
                 .in = 96,
                 .group = 32,
                 .with_min = true,
                 .with_bias = true,
                 .half_factors = true,
                 .symmetric = true});
  return all;
}

// Rounding of a sum of n products in any order: (n + 2) eps sum |x w| (Higham 2002, 3.1). Quantised weights
// are summed as code * scale and min apart, which may both be larger than the weight: |x| (|code scale| +
// |min|), and a few roundings for what is done once a group.
TestMat rounding_bound(ConstMat x, const CanonicalLinear& w, ComputeType compute) {
  const std::vector<float> values = reference::dequantise(w);
  TestMat bound(x.rows, w.out);
  const bool rounds = w.dense() && compute != ComputeType::kAuto && compute != ComputeType::kF32;
  const double weight_eps = !rounds ? 0x1p-23 : compute == ComputeType::kBF16 ? 0x1p-8 : 0x1p-11;
  for (int32_t r = 0; r < x.rows; ++r) {
    for (int32_t o = 0; o < w.out; ++o) {
      double sum = w.bias.empty() ? 0 : std::abs(w.bias[o]);
      for (int32_t i = 0; i < w.in; ++i) {
        const double value = values[static_cast<size_t>(o) * w.in + i];
        const int32_t group = w.dense() ? 0 : w.g_idx.empty() ? i / w.group : w.g_idx[i];
        const double min = w.min.empty() ? 0 : w.min[static_cast<size_t>(o) * w.num_groups() + group];
        sum += std::abs(x.row<float>(r)[i]) * (std::abs(value - min) + std::abs(min));
      }
      bound.at(r, o) = static_cast<float>((0x1p-24 * (w.in + 8) + weight_eps) * sum + 1e-30);
    }
  }
  return bound;
}

void check_linear(Backend& backend, const WeightShape& shape, ComputeType compute, int32_t rows) {
  Random random(1);
  const CanonicalLinear w = random_weight(random, shape);
  const LinearWeight packed = backend.pack(w, compute).value();
  TestMat x = TestMat::random(random, rows, shape.in, 3), expected(rows, shape.out),
          actual(rows, shape.out, 5);
  TestMat seen(rows, shape.in);
  reference::round_inputs(x.mat(), packed, seen.mat());
  reference::linear(seen.mat(), w, expected.mat());
  backend.linear(x.mat(), packed, actual.mat());
  TestMat bound = rounding_bound(seen.mat(), w, compute);
  const std::string what = shape.name() + " " + std::to_string(rows) + " rows";
  expect_within(
      actual, expected, [&](int32_t r, int32_t c) { return bound.at(r, c); }, what);
  EXPECT_TRUE(actual.intact()) << what;
  EXPECT_TRUE(x.intact()) << what;
}

TEST_P(Linear, TurnsAnInputThatIsNotFiniteIntoOutputsThatAreNot) {
  const auto backend = tested_backend(GetParam());
  for (const WeightShape& shape : shapes()) {
    if (shape.order != Order::kNone) continue;
    for (const float broken :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      Random random(7);
      const LinearWeight packed = backend->pack(random_weight(random, shape), ComputeType::kAuto).value();
      TestMat x = TestMat::random(random, 3, shape.in), out(3, shape.out);
      x.at(1, shape.in - 1) = broken;
      backend->linear(x.mat(), packed, out.mat());
      for (int32_t o = 0; o < shape.out; ++o) {
        ASSERT_FALSE(std::isfinite(out.at(1, o))) << shape.name() << ", output " << o;
        ASSERT_TRUE(std::isfinite(out.at(0, o)) && std::isfinite(out.at(2, o))) << shape.name();
      }
    }
  }
}

TEST_P(Linear, InputsOfNothingLeaveTheBias) {
  const auto backend = tested_backend(GetParam());
  for (const WeightShape& shape : shapes()) {
    Random random(8);
    const CanonicalLinear w = random_weight(random, shape);
    TestMat x(1, shape.in), out(1, shape.out);
    for (int32_t i = 0; i < shape.in; ++i) x.at(0, i) = i % 2 == 0 ? 0.0f : 1e-38f;
    backend->linear(x.mat(), backend->pack(w, ComputeType::kAuto).value(), out.mat());
    for (int32_t o = 0; o < shape.out; ++o)
      ASSERT_NEAR(out.at(0, o), w.bias.empty() ? 0 : w.bias[static_cast<size_t>(o)], 1e-30) << shape.name();
  }
}

TEST_P(Linear, AgreesWithTheReference) {
  const auto backend = tested_backend(GetParam());
  for (const WeightShape& shape : shapes())
    for (int32_t rows : {1, 2, 3, 4, 5, 6, 7, 13, 70})
      check_linear(*backend, shape, ComputeType::kAuto, rows);
}

TEST_P(Linear, ComputesInTheTypeThatWasAskedFor) {
  const auto backend = tested_backend(GetParam());
  for (const WeightShape& shape : shapes()) {
    for (ComputeType compute : {ComputeType::kF32, ComputeType::kBF16, ComputeType::kF16}) {
      check_linear(*backend, shape, compute, 3);
      Random random(1);
      const LinearKind kind = backend->pack(random_weight(random, shape), compute).value().kind;
      if (compute == ComputeType::kF32)
        EXPECT_EQ(kind, LinearKind::kF32);
      else if (shape.group > 0)
        EXPECT_EQ(kind, shape.codes == Codes::kU4 ? LinearKind::kInt4 : LinearKind::kInt8);
      else
        EXPECT_EQ(kind, compute == ComputeType::kBF16 ? LinearKind::kBF16 : LinearKind::kF16);
    }
  }
}

TEST_P(Linear, ARowDoesNotDependOnItsBatch) {
  const auto backend = tested_backend(GetParam());
  for (const WeightShape& shape : shapes()) {
    Random random(2);
    const LinearWeight packed = backend->pack(random_weight(random, shape), ComputeType::kAuto).value();
    TestMat x = TestMat::random(random, 70, shape.in), all(70, shape.out);
    backend->linear(x.mat(), packed, all.mat());
    for (int32_t rows : {1, 2, 3, 4, 5, 9, 69}) {
      for (int32_t first : {0, 1, 70 - rows}) {
        TestMat part(rows, shape.out), same(rows, shape.out);
        ConstMat some = x.mat();
        some.data = x.mat().row<float>(first);
        some.rows = rows;
        backend->linear(some, packed, part.mat());
        for (int32_t r = 0; r < rows; ++r)
          for (int32_t c = 0; c < shape.out; ++c) same.at(r, c) = all.at(first + r, c);
        expect_same_bits(part, same, shape.name() + ", " + std::to_string(rows) + " rows alone");
      }
    }
  }
}

TEST_P(Linear, DoesNotDependOnTheNumberOfThreads) {
  for (const WeightShape& shape : shapes()) {
    for (int32_t rows : {1, 3, 20}) {
      Random random(3);
      const CanonicalLinear w = random_weight(random, shape);
      TestMat x = TestMat::random(random, rows, shape.in);
      TestMat one(rows, shape.out);
      for (int32_t threads : {1, 2, 3}) {
        const auto backend = tested_backend(GetParam(), threads);
        TestMat out(rows, shape.out);
        backend->linear(x.mat(), backend->pack(w, ComputeType::kAuto).value(),
                        threads == 1 ? one.mat() : out.mat());
        if (threads > 1)
          expect_same_bits(out, one, shape.name() + ", " + std::to_string(threads) + " threads");
      }
    }
  }
}

TEST_P(Linear, EmbedReadsTheRowsOfThePackedTable) {
  const auto backend = tested_backend(GetParam());
  for (const WeightShape& shape : shapes()) {
    Random random(4);
    const CanonicalLinear table = random_weight(random, shape);
    const LinearWeight packed = backend->pack(table, ComputeType::kAuto).value();
    const std::vector<int32_t> ids = {0, shape.out - 1, shape.out / 2, 0};
    TestMat expected(4, shape.in), actual(4, shape.in, 2);
    reference::embed(ids.data(), table, expected.mat());
    backend->embed(ids.data(), packed, actual.mat());
    expect_same_bits(actual, expected, shape.name());
    EXPECT_TRUE(actual.intact());
  }
}

// One input of 1 makes each output its weight.
TEST_P(Linear, ReadsEveryHalfAndBrainFloatExactly) {
  const auto backend = tested_backend(GetParam());
  for (Codes codes : {Codes::kF16, Codes::kBF16}) {
    CanonicalLinear w;
    w.codes_type = codes;
    w.out = 1 << 16;
    w.in = 1;
    w.storage = Buffer::host(size_t{2} << 16);
    for (int32_t bits = 0; bits < 1 << 16; ++bits)
      w.storage.as<uint16_t>()[bits] = static_cast<uint16_t>(bits);
    w.codes = {w.storage.as<std::byte>(), w.storage.bytes()};
    const LinearWeight packed = backend->pack(w, ComputeType::kAuto).value();
    TestMat one(1, 1), out(1, 1 << 16);
    one.at(0, 0) = 1;
    backend->linear(one.mat(), packed, out.mat());
    for (int32_t bits = 0; bits < 1 << 16; ++bits) {
      const auto half = static_cast<uint16_t>(bits);
      const float value = codes == Codes::kF16 ? f16_to_f32(half) : bf16_to_f32(half);
      if (std::isnan(value))
        EXPECT_TRUE(std::isnan(out.at(0, bits))) << bits;
      else if (packed.input_type == DType::kBF16 && std::abs(value) < std::numeric_limits<float>::min())
        EXPECT_LE(std::abs(out.at(0, bits)), std::abs(value)) << bits;  // the instruction takes them for 0
      else
        EXPECT_EQ(out.at(0, bits), value) << bits;
    }
  }
}

TEST_P(Linear, RefusesGroupIndicesThatDoNotExist) {
  const auto backend = tested_backend(GetParam());
  Random random(5);
  CanonicalLinear w = random_weight(
      random, {.codes = Codes::kU4, .out = 16, .in = 64, .group = 32, .order = Order::kPermuted});
  w.g_idx[9] = 2;
  EXPECT_EQ(backend->pack(w, ComputeType::kAuto).error().code, Code::kCorrupt);
  w.g_idx[9] = -1;
  EXPECT_EQ(backend->pack(w, ComputeType::kF32).error().code, Code::kCorrupt);
  w.g_idx.pop_back();
  EXPECT_EQ(backend->pack(w, ComputeType::kAuto).error().code, Code::kCorrupt);
}

INSTANTIATE_TEST_SUITE_P(Backends, Linear, ::testing::ValuesIn(tested_backends()),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace whippet::testing
