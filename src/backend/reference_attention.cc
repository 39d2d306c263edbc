#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/reference.h"

namespace whippet::reference {
namespace {

double cache_element(const void* base, DType dtype, int64_t index) {
  switch (dtype) {
    case DType::kF32:
      return static_cast<const float*>(base)[index];
    case DType::kF16:
      return f16_to_f32(static_cast<const uint16_t*>(base)[index]);
    case DType::kBF16:
      return bf16_to_f32(static_cast<const uint16_t*>(base)[index]);
    default:
      WH_CHECK(false, "KV cache of {}", dtype_name(dtype));
  }
}

// One query head of one row: out [head_dim].
void attend(const AttentionArgs& args, const int32_t* table, int32_t position, int32_t head, const float* q,
            float* out) {
  const KvCacheView& cache = args.cache;
  const int32_t first = args.window > 0 ? std::max(0, position - args.window + 1) : 0;
  const auto element_of = [&](int32_t t) {
    const int64_t block = table[t / cache.block_size];
    WH_CHECK(block >= 0 && block < cache.num_blocks, "block {} at position {}", block, t);
    return ((block * cache.num_kv_heads + args.kv_head_of_q[head]) * cache.block_size +
            t % cache.block_size) *
           cache.head_dim;
  };
  std::vector<double> scores;
  double largest = -std::numeric_limits<double>::infinity();
  for (int32_t t = first; t <= position; ++t) {
    double dot = 0;
    for (int32_t d = 0; d < cache.head_dim; ++d)
      dot += q[d] * cache_element(cache.k, cache.dtype, element_of(t) + d);
    scores.push_back(dot * args.scale);
    largest = std::max(largest, scores.back());
  }
  std::vector<double> sum(cache.head_dim, 0.0);
  double total = 0;
  for (int32_t t = first; t <= position; ++t) {
    const double p = std::exp(scores[t - first] - largest);
    total += p;
    for (int32_t d = 0; d < cache.head_dim; ++d)
      sum[d] += p * cache_element(cache.v, cache.dtype, element_of(t) + d);
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
