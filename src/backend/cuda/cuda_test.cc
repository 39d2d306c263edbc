// What the op tests of src/backend do not reach: activations of 16 bits and fused ops; products are in
// cuda_linear_test.cc.
// The op tests themselves run on CUDA with fp32 activations wherever there is a device.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "backend/cuda/cuda_testing.h"
#include "backend/reference.h"

namespace whippet::testing {
namespace {

TEST(Cuda, RunsTheOpTests) {
  if (const std::string reason = why_no_cuda(); !reason.empty()) GTEST_SKIP() << reason;
  const std::vector<std::string> tested = tested_backends();
  EXPECT_NE(std::find(tested.begin(), tested.end(), "cuda"), tested.end());
}

// Ops on rows are done in fp32 and rounded once.
TEST_P(CudaHalf, RowOpsRoundOnce) {
  TestMat x = random_mat(9, 2 * 576), weight = TestMat::random(random_, 1, 576), y = random_mat(9, 2 * 576);
  TestMat expected(9, 2 * 576), actual(9, 2 * 576);
  const auto bound = [&](int32_t r, int32_t c) { return 1.1 * unit() * std::abs(expected.at(r, c)) + 1e-7; };
  reference::rms_norm(x.mat(), weight.mat().row<float>(0), 576, 1e-5f, expected.mat());
  on_host_->rms_norm(x.mat(), weight.mat().row<float>(0), 576, 1e-5f, actual.mat());
  expect_within(actual, expected, bound, "rms_norm");
  expected = actual = x;
  reference::add(y.mat(), expected.mat());
  on_host_->add(y.mat(), actual.mat());
  expect_within(actual, expected, bound, "add");
  TestMat half_expected(9, 576), half_actual(9, 576);
  reference::silu_mul(x.mat(), half_expected.mat());
  on_host_->silu_mul(x.mat(), half_actual.mat());
  const auto half_bound = [&](int32_t r, int32_t c) {
    return 1.1 * unit() * std::abs(half_expected.at(r, c)) + 1e-7;
  };
  expect_within(half_actual, half_expected, half_bound, "silu_mul");
}

// Three sequences with a row each on the device: rope, store_kv and attention, looked at in between or not.
class DecodeStep {
 public:
  static constexpr int32_t kDim = 64, kHeads = 14, kKvHeads = 2, kBlock = 16, kBlocks = 60;

  DecodeStep(Backend& backend, TestMat& qkv, Random& random) : backend_(backend), qkv_(backend, qkv) {
    const std::vector<int32_t> positions = {70, 0, 200, -1};
    rows_ = static_cast<int32_t>(positions.size());
    std::vector<int32_t> table, heads;
    for (int32_t i = 0; i < rows_ * kTable; ++i)
      table.push_back(i % kTable < 13 ? i / kTable * 13 + i % kTable * 5 % 13 : -1);
    for (int32_t h = 0; h < kHeads; ++h) heads.push_back(h % kKvHeads);
    std::vector<float> angles;
    for (int32_t i = 0; i < rows_ * kDim; ++i)
      angles.push_back(static_cast<float>(random() % 200) * 0.01f - 1);
    std::vector<uint16_t> cache;
    for (int32_t i = 0; i < kBlocks * kKvHeads * kBlock * kDim; ++i)
      cache.push_back(static_cast<uint16_t>(0x3800 + random() % 0x700));  // around 0.5 in either type
    positions_ = upload(positions.data(), positions.size() * 4);
    sequences_ = upload(std::vector<int32_t>{0, 1, 2, 3}.data(), 16);
    table_ = upload(table.data(), table.size() * 4);
    heads_ = upload(heads.data(), heads.size() * 4);
    angles_ = upload(angles.data(), angles.size() * 4);
    k_ = upload(cache.data(), cache.size() * 2);
    v_ = upload(cache.data(), cache.size() * 2);
    out_ = backend.allocate(static_cast<size_t>(rows_ * kHeads * kDim) * 2);
  }

  // Everything that the ops wrote, in bits.
  std::vector<uint16_t> run(bool apart) {
    const DType dtype = backend_.activation_type();
    const Mat all = qkv_.mat(), q = all.columns(0, kHeads * kDim);
    const Mat k = all.columns(q.cols, kKvHeads * kDim), v = all.columns(q.cols + k.cols, k.cols);
    const Mat out = out_.mat(dtype, rows_, kHeads * kDim), angles = angles_.mat(DType::kF32, rows_, kDim);
    BatchView batch;
    batch.num_tokens = batch.num_seqs = rows_;
    batch.max_blocks_per_seq = kTable;
    batch.positions = positions_.as<int32_t>();
    batch.seq_of_token = sequences_.as<int32_t>();
    batch.block_table = table_.as<int32_t>();
    const KvCacheView cache{k_.as<void>(), v_.as<void>(), dtype, kBlocks, kBlock, kKvHeads, kDim};
    std::vector<uint16_t> bits;
    const auto look = [&](const Buffer& of, size_t count) {
      std::vector<uint16_t> part(count);
      backend_.copy_to_host(part.data(), of.as<void>(), count * 2);
      bits.insert(bits.end(), part.begin(), part.end());
    };
    backend_.rope(q, kDim, angles);
    if (apart) qkv_.read();
    backend_.rope(k, kDim, angles);
    if (apart) qkv_.read();
    backend_.store_kv(batch, k, v, cache);
    if (apart) qkv_.read();
    AttentionArgs args;
    args.q = q;
    args.cache = cache;
    args.kv_head_of_q = heads_.as<int32_t>();
    args.num_q_heads = kHeads;
    args.scale = 0.125f;
    args.out = out;
    backend_.attention(batch, args);
    look(out_, static_cast<size_t>((rows_ - 1) * kHeads * kDim));
    look(k_, k_.bytes() / 2);
    look(v_, v_.bytes() / 2);
    const TestMat seen = qkv_.read();
    for (int32_t r = 0; r < rows_ - 1; ++r)
      for (int32_t c = 0; c < seen.cols(); ++c) bits.push_back(f32_to_bf16(seen.at(r, c)));
    return bits;
  }

 private:
  static constexpr int32_t kTable = 14;
  Buffer upload(const void* from, size_t bytes) {
    Buffer made = backend_.allocate(bytes);
    backend_.copy_to_device(made.as<void>(), from, bytes);
    return made;
  }

  Backend& backend_;
  OnDevice qkv_;
  int32_t rows_;
  Buffer positions_, sequences_, table_, heads_, angles_, k_, v_, out_;
};

TEST_P(CudaHalf, RopeAndStoreGoIntoTheAttentionOfADecodeStep) {
  TestMat qkv = random_mat(4, (DecodeStep::kHeads + 2 * DecodeStep::kKvHeads) * DecodeStep::kDim);
  Random same_a(3), same_b(3);
  EXPECT_EQ(DecodeStep(*device_, qkv, same_a).run(true), DecodeStep(*device_, qkv, same_b).run(false));
}

INSTANTIATE_TEST_SUITE_P(Types, CudaHalf, half_types(), half_name);

}  // namespace
}  // namespace whippet::testing
