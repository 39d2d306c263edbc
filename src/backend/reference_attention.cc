#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/reference.h"

namespace whippet::reference {
namespace {

// Element d of a row of K or V.
double cache_element(const KvCacheView& cache, const void* base, const float* scales, int64_t row,
                     int32_t d) {
  const int64_t index = row * cache.head_dim + d;
  switch (cache.dtype) {
    case DType::kF32:
      return static_cast<const float*>(base)[index];
    case DType::kF16:
      return f16_to_f32(static_cast<const uint16_t*>(base)[index]);
    case DType::kBF16:
      return bf16_to_f32(static_cast<const uint16_t*>(base)[index]);
    case DType::kI8:
      return static_cast<float>(static_cast<const int8_t*>(base)[index]) * scales[row];
    default:
      WH_CHECK(false, "KV cache of {}", dtype_name(cache.dtype));
  }
}

// One query head of one row: out [head_dim].
void attend(const AttentionArgs& args, const int32_t* table, int32_t position, int32_t head, const float* q,
            float* out) {
  const KvCacheView& cache = args.cache;
  const int32_t first = args.window > 0 ? std::max(0, position - args.window + 1) : 0;
  const auto row_of = [&](int32_t t) {
    const int64_t block = table[t / cache.block_size];
    WH_CHECK(block >= 0 && block < cache.num_blocks, "block {} at position {}", block, t);
    return (block * cache.num_kv_heads + args.kv_head_of_q[head]) * cache.block_size + t % cache.block_size;
  };
  std::vector<double> scores;
  double largest = -std::numeric_limits<double>::infinity();
  for (int32_t t = first; t <= position; ++t) {
    double dot = 0;
    for (int32_t d = 0; d < cache.head_dim; ++d)
      dot += q[d] * cache_element(cache, cache.k, cache.k_scales, row_of(t), d);
    scores.push_back(dot * args.scale);
    largest = std::max(largest, scores.back());
  }
  std::vector<double> sum(cache.head_dim, 0.0);
  double total = 0;
  for (int32_t t = first; t <= position; ++t) {
    const double p = std::exp(scores[t - first] - largest);
    total += p;
    for (int32_t d = 0; d < cache.head_dim; ++d)
      sum[d] += p * cache_element(cache, cache.v, cache.v_scales, row_of(t), d);
  }
  for (int32_t d = 0; d < cache.head_dim; ++d) out[d] = static_cast<float>(sum[d] / total);
}

}  // namespace

void attention(const BatchView& batch, const AttentionArgs& args) {
  for (int32_t r = 0; r < batch.num_tokens; ++r) {
    const int32_t* table =
        batch.block_table + static_cast<int64_t>(batch.seq_of_token[r]) * batch.max_blocks_per_seq;
    for (int32_t h = 0; h < args.num_q_heads; ++h) {
      const int64_t column = static_cast<int64_t>(h) * args.cache.head_dim;
      attend(args, table, batch.positions[r], h, args.q.row<float>(r) + column,
             args.out.row<float>(r) + column);
    }
  }
}

}  // namespace whippet::reference
