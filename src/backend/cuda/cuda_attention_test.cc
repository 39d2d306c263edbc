// Attention with activations and caches of 16 bits: decode steps, prompts and both together.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "backend/cuda/cuda_testing.h"
#include "backend/reference.h"

namespace whippet::testing {
namespace {

class CudaAttention : public CudaHalf {};

// A sequence of `length` tokens in shuffled blocks, attended to from its last `rows` positions.
struct AttentionCase {
  int32_t dim, length, rows, window;
  std::vector<int32_t> kv_head_of_q;
};

// What the weights of a softmax, rounded to 16 bits for the second product and in their own sum, leave the
// result off by: unit times sum p |v - o|, which is at most sum p |v| + |o|. This is sum p |v|.
TestMat spread_of(const BatchView& batch, AttentionArgs args, int32_t rows, int32_t cols, const Buffer& v,
                  size_t elements) {
  const Buffer magnitudes = Buffer::host(elements * 2);
  for (size_t i = 0; i < elements; ++i)
    magnitudes.as<uint16_t>()[i] = static_cast<uint16_t>(v.as<uint16_t>()[i] & 0x7fff);
  TestMat spread(rows, cols);
  args.cache.v = magnitudes.as<void>();
  args.out = spread.mat();
  reference::attention(batch, args);
  return spread;
}

// rounded: the rows of prompts have weights of 16 bits.
void check_attention(Backend& backend, Random& random, const AttentionCase& c, DType dtype, double unit,
                     bool rounded, const std::function<TestMat(int32_t, int32_t)>& random_mat) {
  constexpr int32_t kBlock = 16;
  const int32_t blocks = c.length / kBlock + 2, kv_heads = 2;
  std::vector<int32_t> table(static_cast<size_t>(blocks)), positions(static_cast<size_t>(c.length));
  const std::vector<int32_t> sequence(static_cast<size_t>(c.length), 0);
  std::iota(table.begin(), table.end(), 0);
  std::shuffle(table.begin(), table.end(), random);
  std::iota(positions.begin(), positions.end(), 0);
  BatchView batch;
  batch.num_tokens = c.length;
  batch.num_seqs = 1;
  batch.max_blocks_per_seq = blocks;
  batch.positions = positions.data();
  batch.seq_of_token = sequence.data();
  batch.block_table = table.data();
  const auto elements = static_cast<size_t>(blocks * kv_heads * kBlock * c.dim);
  const Buffer k = Buffer::host(elements * 2), v = Buffer::host(elements * 2);
  std::fill_n(k.as<uint16_t>(), elements, uint16_t{0xffff});  // NaN where nothing was stored
  std::fill_n(v.as<uint16_t>(), elements, uint16_t{0xffff});
  const KvCacheView cache{k.as<void>(), v.as<void>(), dtype, blocks, kBlock, kv_heads, c.dim};
  TestMat keys = random_mat(c.length, kv_heads * c.dim), values = random_mat(c.length, kv_heads * c.dim);
  backend.store_kv(batch, keys.mat(), values.mat(), cache);

  const auto num_q = static_cast<int32_t>(c.kv_head_of_q.size());
  TestMat q = random_mat(c.rows, num_q * c.dim), expected(c.rows, num_q * c.dim), actual = expected;
  batch.num_tokens = c.rows;
  batch.positions = positions.data() + (c.length - c.rows);
  const std::vector<int32_t> begins = {0, c.rows};
  batch.row_begin = begins.data();
  AttentionArgs args;
  args.q = q.mat();
  args.cache = cache;
  args.kv_head_of_q = c.kv_head_of_q.data();
  args.num_q_heads = num_q;
  args.scale = 1 / std::sqrt(static_cast<float>(c.dim));
  args.window = c.window;
  args.out = expected.mat();
  reference::attention(batch, args);
  args.out = actual.mat();
  backend.attention(batch, args);
  const TestMat spread = spread_of(batch, args, c.rows, num_q * c.dim, v, elements);
  // The result is rounded once. Else weights are good to a few roundings of fp32; values are at most 6.
  const auto bound = [&](int32_t r, int32_t col) {
    const double size = std::abs(expected.at(r, col));
    return 1.1 * unit * (size + (rounded ? spread.at(r, col) + size : 0)) + 1e-5;
  };
  expect_within(actual, expected, bound,
                "dim " + std::to_string(c.dim) + " length " + std::to_string(c.length));
}

TEST_P(CudaAttention, AttentionAgreesWithTheReference) {
  const std::vector<int32_t> qwen = {0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1};
  const std::vector<int32_t> wide(20, 1);
  for (const AttentionCase& c : {AttentionCase{64, 530, 1, 0, qwen},
                                 {64, 1, 1, 0, qwen},
                                 {64, 700, 40, 0, qwen},
                                 {128, 2000, 1, 0, {0, 0, 1, 1}},
                                 {128, 300, 3, 100, {1, 0, 1}},
                                 {64, 900, 2, 65, wide},
                                 {64, 300, 300, 0, qwen},
                                 {64, 500, 150, 65, {1, 0}},
                                 {64, 1500, 1300, 0, wide},
                                 {128, 330, 190, 100, {0, 1, 1}},
                                 {128, 260, 260, 0, {0}},
                                 {80, 100, 5, 0, {0, 1}}}) {
    check_attention(*on_host_, random_, c, dtype(), unit(), c.rows >= 16 && !deterministic(),
                    [&](int32_t rows, int32_t cols) { return random_mat(rows, cols, 8); });
    if (HasFatalFailure()) return;
  }
}

// A step of prompts and of single rows between them, each with keys of its own.
TEST_P(CudaAttention, PromptsAndSingleRowsAttendTogether) {
  constexpr int32_t kBlock = 16, kDim = 64, kKvHeads = 2, kHeads = 3, kBlocks = 20;
  const std::vector<std::pair<int32_t, int32_t>> sequences = {
      // tokens, of them rows of this step
      {5, 1}, {300, 100}, {40, 3}, {150, 16}, {33, 15}, {200, 130}, {1, 1}};
  std::vector<int32_t> table(sequences.size() * kBlocks), heads = {1, 0, 1};
  std::iota(table.begin(), table.end(), 0);
  std::shuffle(table.begin(), table.end(), random_);
  std::vector<int32_t> all_positions, all_seqs, positions, seqs, begins = {0};
  for (size_t s = 0; s < sequences.size(); ++s) {
    const auto [length, rows] = sequences[s];
    for (int32_t t = 0; t < length; ++t) {
      all_positions.push_back(t), all_seqs.push_back(static_cast<int32_t>(s));
      if (t >= length - rows) positions.push_back(t), seqs.push_back(static_cast<int32_t>(s));
    }
    begins.push_back(static_cast<int32_t>(positions.size()));
  }
  const size_t elements = table.size() * kKvHeads * kBlock * kDim;
  const Buffer k = Buffer::host(elements * 2), v = Buffer::host(elements * 2);
  std::fill_n(k.as<uint16_t>(), elements, uint16_t{0xffff});
  std::fill_n(v.as<uint16_t>(), elements, uint16_t{0xffff});
  const KvCacheView cache{k.as<void>(), v.as<void>(), dtype(), static_cast<int32_t>(table.size()),
                          kBlock,       kKvHeads,     kDim};
  BatchView batch;
  batch.num_tokens = static_cast<int32_t>(all_positions.size());
  batch.num_seqs = static_cast<int32_t>(sequences.size());
  batch.max_blocks_per_seq = kBlocks;
  batch.positions = all_positions.data();
  batch.seq_of_token = all_seqs.data();
  batch.block_table = table.data();
  TestMat keys = random_mat(batch.num_tokens, kKvHeads * kDim),
          values = random_mat(batch.num_tokens, kKvHeads * kDim);
  on_host_->store_kv(batch, keys.mat(), values.mat(), cache);
  batch.num_tokens = static_cast<int32_t>(positions.size());
  batch.positions = positions.data();
  batch.seq_of_token = seqs.data();
  batch.row_begin = begins.data();
  TestMat q = random_mat(batch.num_tokens, kHeads * kDim), expected(batch.num_tokens, kHeads * kDim),
          actual = expected;
  AttentionArgs args;
  args.q = q.mat();
  args.cache = cache;
  args.kv_head_of_q = heads.data();
  args.num_q_heads = kHeads;
  args.scale = 0.125f;
  args.out = expected.mat();
  reference::attention(batch, args);
  args.out = actual.mat();
  on_host_->attention(batch, args);
  const TestMat spread = spread_of(batch, args, batch.num_tokens, kHeads * kDim, v, elements);
  const auto bound = [&](int32_t r, int32_t c) {
    const double size = std::abs(expected.at(r, c));
    const bool rounded =
        !deterministic() && sequences[static_cast<size_t>(seqs[static_cast<size_t>(r)])].second >= 16;
    return 1.1 * unit() * (size + (rounded ? spread.at(r, c) + size : 0)) + 1e-5;
  };
  expect_within(actual, expected, bound, "mixed");
}

INSTANTIATE_TEST_SUITE_P(Types, CudaAttention, half_types(), half_name);

}  // namespace
}  // namespace whippet::testing
