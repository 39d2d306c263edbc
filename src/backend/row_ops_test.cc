#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/op_testing.h"
#include "backend/reference.h"

namespace whippet::testing {
namespace {

class RowOps : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Backend> backend_ = tested_backend(GetParam());
  Random random_{7};
};

constexpr double kEps = 0x1p-23;

TEST_P(RowOps, RmsNormAgreesWithTheReference) {
  for (int32_t rows : {1, 2, 7, 70}) {
    for (const auto& [dim, pieces] : {std::pair{576, 1}, {64, 9}, {17, 3}, {8, 2}, {1, 1}, {4864, 1}}) {
      TestMat x = TestMat::random(random_, rows, dim * pieces, 3, 2);
      TestMat weight = TestMat::random(random_, 1, dim);
      TestMat expected(rows, dim * pieces), actual(rows, dim * pieces, 1);
      reference::rms_norm(x.mat(), weight.mat().row<float>(0), dim, 1e-5f, expected.mat());
      backend_->rms_norm(x.mat(), weight.mat().row<float>(0), dim, 1e-5f, actual.mat());
      // The sum of dim squares has a relative error of dim / 16 + 5 roundings, halved by the root.
      const double relative = kEps * (dim / 16 + 10);
      const auto bound = [&](int32_t r, int32_t c) { return relative * std::abs(expected.at(r, c)) + 1e-37; };
      expect_within(actual, expected, bound, "dim " + std::to_string(dim));
      EXPECT_TRUE(actual.intact());
      backend_->rms_norm(x.mat(), weight.mat().row<float>(0), dim, 1e-5f, x.mat());
      expect_same_bits(x, actual, "in place");
      EXPECT_TRUE(x.intact());
    }
  }
}

TEST_P(RowOps, RopeAgreesWithTheReference) {
  for (int32_t head_dim : {2, 8, 32, 64, 96, 128}) {
    constexpr int32_t kRows = 40;
    std::vector<int32_t> positions, seq_of_token;
    for (int32_t r = 0; r < kRows; ++r) {
      positions.push_back(r < 20 ? r : 131000 + r);
      seq_of_token.push_back(r / 20);
    }
    std::vector<float> inv_freq;
    for (float theta : {1e4f, 1e6f})
      for (int32_t i = 0; i < head_dim / 2; ++i)
        inv_freq.push_back(std::pow(theta, -2.0f * static_cast<float>(i) / static_cast<float>(head_dim)));
    BatchView batch;
    batch.num_tokens = kRows;
    batch.num_seqs = 2;
    batch.positions = positions.data();
    batch.seq_of_token = seq_of_token.data();
    batch.inv_freq = inv_freq.data();
    TestMat expected(kRows, head_dim), angles(kRows, head_dim, 4);
    reference::rope_angles(batch, expected.mat());
    backend_->rope_angles(batch, angles.mat());
    expect_same_bits(angles, expected, "angles");
    EXPECT_TRUE(angles.intact());

    TestMat x = TestMat::random(random_, kRows, 3 * head_dim, 5), rotated = x;
    reference::rope(x.mat(), head_dim, angles.mat());
    TestMat before = rotated;
    backend_->rope(rotated.mat(), head_dim, angles.mat());
    const auto bound = [&](int32_t r, int32_t c) {
      const int32_t half = head_dim / 2, other = c % head_dim < half ? c + half : c - half;
      return 2 * kEps * (std::abs(before.at(r, c)) + std::abs(before.at(r, other)));
    };
    expect_within(rotated, x, bound, "head_dim " + std::to_string(head_dim));
    EXPECT_TRUE(rotated.intact());
  }
}

TEST_P(RowOps, SiluMulAgreesWithTheReference) {
  for (int32_t rows : {1, 3, 70}) {
    for (int32_t cols : {1, 16, 31, 1536}) {
      TestMat in = TestMat::random(random_, rows, 2 * cols, 2, 4), expected(rows, cols),
              actual(rows, cols, 3);
      if (cols > 16) {
        in.at(0, 0) = 200;
        in.at(0, 1) = -200;
        in.at(0, 2) = 0;
        in.at(0, 3) = -87.5f;
      }
      reference::silu_mul(in.mat(), expected.mat());
      backend_->silu_mul(in.mat(), actual.mat());
      // e^-x 2^-23, then one rounding each of the sum, the quotient and the product; e^-x is kept below e^88.
      const auto bound = [&](int32_t r, int32_t c) {
        return 3 * kEps * std::abs(expected.at(r, c)) + 1e-35 * std::abs(in.at(r, cols + c));
      };
      expect_within(actual, expected, bound, "silu_mul");
      EXPECT_TRUE(actual.intact());
    }
  }
}

TEST_P(RowOps, AddAndGatherAreExact) {
  for (int32_t rows : {1, 5, 70}) {
    for (int32_t cols : {1, 15, 576}) {
      TestMat x = TestMat::random(random_, rows, cols, 1), y = TestMat::random(random_, rows, cols, 2);
      TestMat sum = x;
      backend_->add(y.mat(), sum.mat());
      reference::add(y.mat(), x.mat());
      expect_same_bits(sum, x, "add");
      EXPECT_TRUE(sum.intact());
      const std::vector<int32_t> which = {rows - 1, 0, rows / 2};
      TestMat expected(3, cols), actual(3, cols, 7);
      reference::gather_rows(x.mat(), which.data(), expected.mat());
      backend_->gather_rows(x.mat(), which.data(), actual.mat());
      expect_same_bits(actual, expected, "gather");
      EXPECT_TRUE(actual.intact());
    }
  }
}

TEST_P(RowOps, InputsAreFilledFromWhatWasDrawn) {
  const std::vector<int32_t> sources = {-1, 2, 0, -1, 1}, drawn = {70, -1, 90};
  BatchView batch;
  batch.num_tokens = 5;
  batch.sources = sources.data();
  std::vector<int32_t> expected = {1, 2, 3, 4, 5}, actual = expected;
  reference::fill_inputs(batch, drawn.data(), expected.data());
  backend_->fill_inputs(batch, drawn.data(), actual.data());
  EXPECT_EQ(expected, (std::vector<int32_t>{1, 90, 70, 4, 0}));
  EXPECT_EQ(actual, expected);
}

// A whole row op is one worker's work per row: more rows or threads must not change a bit.
TEST_P(RowOps, ARowDoesNotDependOnItsBatchOrThreads) {
  TestMat x = TestMat::random(random_, 70, 2 * 1536), weight = TestMat::random(random_, 1, 2 * 1536);
  TestMat normed(70, 2 * 1536), gated(70, 1536);
  backend_->rms_norm(x.mat(), weight.mat().row<float>(0), 2 * 1536, 1e-5f, normed.mat());
  backend_->silu_mul(x.mat(), gated.mat());
  for (int32_t threads : {1, 3}) {
    const auto other = tested_backend(GetParam(), threads);
    for (int32_t r : {0, 33, 69}) {
      TestMat one(1, 2 * 1536), half(1, 1536);
      ConstMat row = x.mat();
      row.data = x.mat().row<float>(r);
      row.rows = 1;
      other->rms_norm(row, weight.mat().row<float>(0), 2 * 1536, 1e-5f, one.mat());
      other->silu_mul(row, half.mat());
      for (int32_t c = 0; c < 2 * 1536; ++c) ASSERT_TRUE(same_bits(one.at(0, c), normed.at(r, c)));
      for (int32_t c = 0; c < 1536; ++c) ASSERT_TRUE(same_bits(half.at(0, c), gated.at(r, c)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, RowOps, ::testing::ValuesIn(tested_backends()),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace whippet::testing
