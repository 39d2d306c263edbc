#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "backend/op_testing.h"
#include "backend/reference.h"

namespace whippet::testing {
namespace {

// What one attention call is about.
struct AttentionCase {
  int32_t head_dim = 64;
  int32_t block_size = 16;
  int32_t window = 0;
  DType cache_type = DType::kF32;
  int32_t num_kv_heads = 2;
  std::vector<int32_t> kv_head_of_q;
  std::string name() const {
    return "dim " + std::to_string(head_dim) + " block " + std::to_string(block_size) + " window " +
           std::to_string(window) + " " + dtype_name(cache_type) + " heads " +
           std::to_string(kv_head_of_q.size()) + "/" + std::to_string(num_kv_heads);
  }
};

// Sequences with their K and V in a paged cache: blocks in shuffled order, every element that no token wrote
// is NaN, and block table entries that nobody reads are -1.
class Sequences {
 public:
  Sequences(Random& random, const AttentionCase& setup, std::vector<int32_t> lengths)
      : setup_(setup), lengths_(std::move(lengths)) {
    const int32_t longest = *std::max_element(lengths_.begin(), lengths_.end());
    max_blocks_ = (longest + setup.block_size - 1) / setup.block_size + 2;
    num_blocks_ = max_blocks_ * static_cast<int32_t>(lengths_.size());
    std::vector<int32_t> free(num_blocks_);
    std::iota(free.begin(), free.end(), 0);
    std::shuffle(free.begin(), free.end(), random);
    table_.assign(static_cast<size_t>(num_blocks_), -1);
    for (size_t s = 0; s < lengths_.size(); ++s)
      for (int32_t b = 0; b * setup.block_size < lengths_[s]; ++b) {
        table_[s * max_blocks_ + b] = free.back();
        free.pop_back();
      }
    const size_t elements =
        static_cast<size_t>(num_blocks_) * setup.num_kv_heads * setup.block_size * setup.head_dim;
    for (Buffer* buffer : {&k_, &v_}) *buffer = Buffer::host(elements * dtype_size(setup.cache_type));
    for (Buffer* buffer : {&k_scales_, &v_scales_})
      *buffer = Buffer::host(elements / static_cast<size_t>(setup.head_dim) * sizeof(float));
    for (const Buffer* buffer : {&k_, &v_, &k_scales_, &v_scales_})
      std::memset(buffer->as<char>(), 0xff, buffer->bytes());  // NaN in every type, int8 by its scale
  }

  KvCacheView cache() const {
    KvCacheView view{k_.as<void>(),     v_.as<void>(),       setup_.cache_type, num_blocks_,
                     setup_.block_size, setup_.num_kv_heads, setup_.head_dim};
    if (setup_.cache_type == DType::kI8) {
      view.k_scales = k_scales_.as<float>();
      view.v_scales = v_scales_.as<float>();
    }
    return view;
  }
  bool has_scales_of(const Sequences& other) const {
    const auto equal = [](const Buffer& a, const Buffer& b) {
      return std::memcmp(a.as<char>(), b.as<char>(), a.bytes()) == 0;
    };
    return equal(k_scales_, other.k_scales_) && equal(v_scales_, other.v_scales_);
  }
  int32_t num() const { return static_cast<int32_t>(lengths_.size()); }
  int32_t length(int32_t s) const { return lengths_[s]; }
  // Forgets the blocks that a window of this size never reads from position `from` on.
  void drop_before(int32_t s, int32_t position) {
    for (int32_t b = 0; (b + 1) * setup_.block_size <= position; ++b) table_[s * max_blocks_ + b] = -1;
  }

  // A batch of rows: of each sequence the positions [first, last).
  struct Rows {
    int32_t seq, first, last;
  };
  class Batch {
   public:
    Batch(const Sequences& of, const std::vector<Rows>& rows) : table_(of.table_) {
      row_begin_.assign(static_cast<size_t>(of.num()) + 1, 0);
      for (const Rows& each : rows)
        for (int32_t p = each.first; p < each.last; ++p) {
          positions_.push_back(p);
          seq_of_token_.push_back(each.seq);
        }
      view_.num_tokens = static_cast<int32_t>(positions_.size());
      view_.num_seqs = of.num();
      view_.max_blocks_per_seq = of.max_blocks_;
      view_.positions = positions_.data();
      view_.seq_of_token = seq_of_token_.data();
      view_.row_begin = row_begin_.data();
      view_.block_table = table_.data();
    }
    Batch(const Batch&) = delete;
    const BatchView& view() const { return view_; }

   private:
    std::vector<int32_t> positions_, seq_of_token_, row_begin_, table_;
    BatchView view_;
  };

 private:
  AttentionCase setup_;
  std::vector<int32_t> lengths_;
  int32_t max_blocks_ = 0, num_blocks_ = 0;
  std::vector<int32_t> table_;
  Buffer k_, v_, k_scales_, v_scales_;
};

using Rows = Sequences::Rows;

AttentionArgs args_of(const AttentionCase& setup, const Sequences& sequences, ConstMat q, Mat out) {
  AttentionArgs args;
  args.q = q;
  args.cache = sequences.cache();
  args.kv_head_of_q = setup.kv_head_of_q.data();
  args.num_q_heads = static_cast<int32_t>(setup.kv_head_of_q.size());
  args.scale = 1 / std::sqrt(static_cast<float>(setup.head_dim));
  args.window = setup.window;
  args.out = out;
  return args;
}

// Fills the whole cache through store_kv.
void fill(Backend& backend, Random& random, const AttentionCase& setup, const Sequences& sequences) {
  std::vector<Rows> all;
  for (int32_t s = 0; s < sequences.num(); ++s) all.push_back({s, 0, sequences.length(s)});
  const Sequences::Batch batch(sequences, all);
  const int32_t cols = setup.num_kv_heads * setup.head_dim;
  TestMat k = TestMat::random(random, batch.view().num_tokens, cols, 6, 2);
  TestMat v = TestMat::random(random, batch.view().num_tokens, cols, 6);
  backend.store_kv(batch.view(), k.mat(), v.mat(), sequences.cache());
}

std::vector<int32_t> heads(int32_t per_kv, int32_t kv) {
  std::vector<int32_t> of;
  for (int32_t h = 0; h < per_kv * kv; ++h) of.push_back(h / per_kv);
  return of;
}

// What the backend of this name is tested with.
std::vector<AttentionCase> setups(const std::string& backend) {
  std::vector<AttentionCase> all;
  const auto add = [&](int32_t dim, int32_t block, int32_t window, DType type, int32_t kv,
                       std::vector<int32_t> kv_head_of_q) {
    all.push_back({dim, block, window, type, kv, std::move(kv_head_of_q)});
  };
  add(64, 16, 0, DType::kF32, 2, heads(7, 2));   // Qwen2.5-0.5B
  add(64, 32, 0, DType::kBF16, 3, heads(3, 3));  // SmolLM2-135M
  add(128, 16, 0, DType::kF16, 2, heads(2, 2));
  add(32, 8, 40, DType::kF32, 1, heads(4, 1));
  add(64, 16, 100, DType::kBF16, 2, heads(3, 2));
  add(128, 7, 1, DType::kF32, 1, heads(1, 1));
  add(8, 5, 0, DType::kF16, 4, heads(2, 4));
  add(80, 16, 0, DType::kBF16, 1, heads(40, 1));  // more heads than a tile has room for
  // Uneven thirds of 14 heads over 2: heads 0-4, 5-9, 10-13, each with the KV heads that it needs.
  add(64, 16, 0, DType::kF32, 1, {0, 0, 0, 0, 0});
  add(64, 16, 0, DType::kF32, 2, {0, 0, 1, 1, 1});
  add(64, 16, 0, DType::kF32, 1, {0, 0, 0, 0});
  add(64, 16, 0, DType::kF32, 3, {2, 0, 0, 1, 2, 2, 0});  // in no order at all
  if (backend == "cuda") return all;                      // which has no int8 cache
  add(64, 16, 0, DType::kI8, 3, heads(3, 3));
  add(64, 32, 100, DType::kI8, 2, heads(7, 2));
  add(128, 8, 0, DType::kI8, 1, heads(40, 1));
  add(80, 7, 1, DType::kI8, 2, heads(1, 2));
  add(8, 5, 0, DType::kI8, 4, heads(2, 4));
  add(40, 128, 0, DType::kI8, 3, {2, 0, 0, 1, 2, 2, 0});
  return all;
}

class Attention : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Backend> backend_ = tested_backend(GetParam());
};

// What the output of row r, head h may be off by, to first order (u = 2^-24, m = sum |q_d k_d| scale of the
// worst key): a score by (head_dim + 2) u m; a weight by twice that and e^x's 2 u and a few roundings,
// relative to it; the weighted mean of values by twice the weights' error, a rounding a key and four a merge.
double bound_of(const BatchView& batch, const AttentionArgs& args, int32_t r, int32_t h) {
  const KvCacheView& cache = args.cache;
  const auto element = [&](const void* base, const float* scales, int64_t row, int32_t d) {
    const int64_t at = row * cache.head_dim + d;
    if (cache.dtype == DType::kI8)
      return static_cast<float>(static_cast<const int8_t*>(base)[at]) * scales[row];
    if (cache.dtype == DType::kF32) return static_cast<const float*>(base)[at];
    const uint16_t bits = static_cast<const uint16_t*>(base)[at];
    return cache.dtype == DType::kF16 ? f16_to_f32(bits) : bf16_to_f32(bits);
  };
  double score = 0, value = 0;
  const int32_t last = batch.positions[r];
  for (int32_t t = args.window > 0 ? std::max(0, last - args.window + 1) : 0; t <= last; ++t) {
    const int64_t block =
        batch.block_table[batch.seq_of_token[r] * batch.max_blocks_per_seq + t / cache.block_size];
    const int64_t row =
        (block * cache.num_kv_heads + args.kv_head_of_q[h]) * cache.block_size + t % cache.block_size;
    double sum = 0;
    for (int32_t d = 0; d < cache.head_dim; ++d) {
      sum +=
          std::abs(args.q.row<float>(r)[h * cache.head_dim + d] * element(cache.k, cache.k_scales, row, d)) *
          args.scale;
      value = std::max(value, std::abs(static_cast<double>(element(cache.v, cache.v_scales, row, d))));
    }
    score = std::max(score, sum);
  }
  const int32_t merges = last / 256 + 1;
  return 0x1p-24 * value * (2 * (2 * (cache.head_dim + 2) * score + 6) + last + 1 + 4 * merges);
}

TEST_P(Attention, AgreesWithTheReference) {
  for (const AttentionCase& setup : setups(GetParam())) {
    Random random(11);
    Sequences sequences(random, setup, {1, 17, 300, 530});
    fill(*backend_, random, setup, sequences);
    const Sequences::Batch batch(sequences, {{0, 0, 1}, {1, 0, 17}, {2, 299, 300}, {3, 490, 530}});
    const int32_t cols = static_cast<int32_t>(setup.kv_head_of_q.size()) * setup.head_dim;
    const int32_t rows = batch.view().num_tokens;
    TestMat q = TestMat::random(random, rows, cols, 9), expected(rows, cols), actual(rows, cols, 11);
    reference::attention(batch.view(), args_of(setup, sequences, q.mat(), expected.mat()));
    backend_->attention(batch.view(), args_of(setup, sequences, q.mat(), actual.mat()));
    const AttentionArgs args = args_of(setup, sequences, q.mat(), actual.mat());
    std::vector<double> bounds;
    for (int32_t r = 0; r < rows; ++r)
      for (int32_t h = 0; h < args.num_q_heads; ++h) bounds.push_back(bound_of(batch.view(), args, r, h));
    const auto bound = [&](int32_t r, int32_t c) {
      return bounds[r * args.num_q_heads + c / setup.head_dim];
    };
    expect_within(actual, expected, bound, setup.name());
    EXPECT_TRUE(actual.intact()) << setup.name();
  }
}

// Decode row by row, any chunk and the whole prompt at once must give the same bits.
TEST_P(Attention, DoesNotDependOnTheChunking) {
  for (const AttentionCase& setup : setups(GetParam())) {
    Random random(12);
    Sequences sequences(random, setup, {600, 3});
    fill(*backend_, random, setup, sequences);
    const int32_t cols = static_cast<int32_t>(setup.kv_head_of_q.size()) * setup.head_dim;
    TestMat q = TestMat::random(random, 600, cols), whole(600, cols);
    const Sequences::Batch all(sequences, {{0, 0, 600}});
    backend_->attention(all.view(), args_of(setup, sequences, q.mat(), whole.mat()));
    for (int32_t chunk : {1, 7, 64, 250}) {
      for (int32_t first = 0; first < 600; first += chunk == 1 ? 37 : chunk) {
        const int32_t last = std::min(600, first + chunk);
        const Sequences::Batch part(sequences, {{0, first, last}, {1, 2, 3}});
        TestMat some(last - first + 1, cols), out(last - first + 1, cols);
        for (int32_t r = first; r < last; ++r)
          for (int32_t c = 0; c < cols; ++c) some.at(r - first, c) = q.at(r, c);
        for (int32_t c = 0; c < cols; ++c) some.at(last - first, c) = q.at(0, c);
        backend_->attention(part.view(), args_of(setup, sequences, some.mat(), out.mat()));
        for (int32_t r = first; r < last; ++r)
          for (int32_t c = 0; c < cols; ++c)
            ASSERT_TRUE(same_bits(out.at(r - first, c), whole.at(r, c)))
                << setup.name() << ", chunk " << chunk << " at row " << r << ": " << out.at(r - first, c)
                << " and " << whole.at(r, c);
      }
    }
  }
}

TEST_P(Attention, DoesNotDependOnTheNumberOfThreads) {
  for (const AttentionCase& setup : setups(GetParam())) {
    Random random(13);
    Sequences sequences(random, setup, {700, 20, 290});
    fill(*backend_, random, setup, sequences);
    const int32_t cols = static_cast<int32_t>(setup.kv_head_of_q.size()) * setup.head_dim;
    for (const std::vector<Rows>& rows :
         {std::vector<Rows>{{0, 699, 700}}, {{0, 699, 700}, {1, 3, 20}, {2, 289, 290}}}) {
      const Sequences::Batch batch(sequences, rows);
      const int32_t n = batch.view().num_tokens;
      TestMat q = TestMat::random(random, n, cols), expected(n, cols);
      tested_backend(GetParam(), 1)
          ->attention(batch.view(), args_of(setup, sequences, q.mat(), expected.mat()));
      for (int32_t threads : {2, 3, 8}) {
        TestMat actual(n, cols);
        tested_backend(GetParam(), threads)
            ->attention(batch.view(), args_of(setup, sequences, q.mat(), actual.mat()));
        expect_same_bits(actual, expected, setup.name() + ", " + std::to_string(threads) + " threads");
      }
    }
  }
}

TEST_P(Attention, NeverReadsBlocksBeforeTheWindow) {
  for (AttentionCase setup : setups(GetParam())) {
    if (setup.window == 0) continue;
    Random random(14);
    Sequences sequences(random, setup, {500});
    fill(*backend_, random, setup, sequences);
    const int32_t cols = static_cast<int32_t>(setup.kv_head_of_q.size()) * setup.head_dim;
    TestMat q = TestMat::random(random, 20, cols), before(20, cols), after(20, cols);
    const Sequences::Batch with(sequences, {{0, 480, 500}});
    backend_->attention(with.view(), args_of(setup, sequences, q.mat(), before.mat()));
    sequences.drop_before(0, 480 - setup.window + 1);
    const Sequences::Batch without(sequences, {{0, 480, 500}});
    backend_->attention(without.view(), args_of(setup, sequences, q.mat(), after.mat()));
    expect_same_bits(after, before, setup.name());
  }
}

TEST_P(Attention, StoreKvWritesItsRowsAndNothingElse) {
  for (const AttentionCase& setup : setups(GetParam())) {
    Random random(15);
    Sequences expected(random, setup, {40, 9});
    Random again(15);
    Sequences actual(again, setup, {40, 9});
    const Sequences::Batch batch(expected, {{0, 13, 40}, {1, 8, 9}});
    const int32_t cols = setup.num_kv_heads * setup.head_dim;
    TestMat k = TestMat::random(random, 28, cols, 2, 100), v = TestMat::random(random, 28, cols, 5, 1e-3f);
    k.at(0, 0) = std::numeric_limits<float>::infinity();
    k.at(1, 1) = 1e30f;
    v.at(2, 2) = -std::numeric_limits<float>::quiet_NaN();
    v.at(3, 3) = 3e-8f;
    reference::store_kv(batch.view(), k.mat(), v.mat(), expected.cache());
    backend_->store_kv(batch.view(), k.mat(), v.mat(), actual.cache());
    const size_t bytes = static_cast<size_t>(expected.cache().num_blocks) * cols * setup.block_size *
                         dtype_size(setup.cache_type);
    EXPECT_EQ(std::memcmp(expected.cache().k, actual.cache().k, bytes), 0) << setup.name();
    EXPECT_EQ(std::memcmp(expected.cache().v, actual.cache().v, bytes), 0) << setup.name();
    EXPECT_TRUE(expected.has_scales_of(actual)) << setup.name();
  }
}

TEST_P(Attention, AnInt8RowIsWithinHalfAStepOfWhatWasStored) {
  if (GetParam() == "cuda") GTEST_SKIP() << "CUDA has no int8 cache";
  AttentionCase setup;
  setup.head_dim = 24;
  setup.cache_type = DType::kI8;
  setup.num_kv_heads = 1;
  Random random(16);
  const Sequences sequences(random, setup, {4});
  const Sequences::Batch batch(sequences, {{0, 0, 4}});
  TestMat k = TestMat::random(random, 4, 24, 1, 3), v = TestMat::random(random, 4, 24);
  for (int32_t d = 0; d < 24; ++d) k.at(1, d) = d == 5 ? 1e-31f : 0;  // next to nothing is nothing
  k.at(2, 7) = -std::numeric_limits<float>::infinity();
  k.at(3, 3) = -500;
  backend_->store_kv(batch.view(), k.mat(), v.mat(), sequences.cache());
  const KvCacheView cache = sequences.cache();
  const int64_t first = int64_t{batch.view().block_table[0]} * setup.block_size;
  for (int32_t r = 0; r < 4; ++r) {
    const float scale = cache.k_scales[first + r];
    EXPECT_EQ(std::isnan(scale), r == 2);
    EXPECT_EQ(scale == 0, r == 1);
    for (int32_t d = 0; d < 24 && r != 2; ++d) {
      const float kept = static_cast<const int8_t*>(cache.k)[(first + r) * 24 + d] * scale;
      EXPECT_NEAR(kept, k.at(r, d), scale * 0.50001 + 1e-30) << r << " " << d;
    }
  }
  EXPECT_EQ(static_cast<const int8_t*>(cache.k)[(first + 3) * 24 + 3], -127);
}

INSTANTIATE_TEST_SUITE_P(Backends, Attention, ::testing::ValuesIn(tested_backends()),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace whippet::testing
