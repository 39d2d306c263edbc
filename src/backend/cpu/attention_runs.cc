#include <algorithm>

#include "backend/cpu/kernel_runs.h"

namespace whippet::cpu {
namespace {

constexpr int32_t kBlockSize = 24, kBlocks = 30;
constexpr const char* kTypes[4] = {"f32", "f16", "bf16", "i8"};

// Keys and values of one head in blocks that lie in turned order.
struct Cache {
  std::vector<float> k, v;
  std::vector<uint16_t> k_halves, v_halves;
  std::vector<int8_t> k_bytes, v_bytes;
  std::vector<float> k_scales, v_scales;  // one a row
  std::vector<int32_t> table;
};

Cache make_cache(const Kernels& portable, int type, int32_t head_dim, bool exact, Sequence& random) {
  const int32_t n = kBlocks * kBlockSize * head_dim;
  Cache cache;
  cache.k = random.values(n, exact);
  cache.v = random.values(n, exact);
  for (int32_t i = 0; i < kBlocks; ++i) cache.table.push_back((i * 7 + 3) % kBlocks);
  cache.k_halves.resize(static_cast<size_t>(n));
  cache.v_halves.resize(static_cast<size_t>(n));
  const auto convert = type == 1 ? portable.to_f16 : portable.to_bf16;
  convert(cache.k.data(), cache.k_halves.data(), n);
  convert(cache.v.data(), cache.v_halves.data(), n);
  const auto to_bytes = [&](const std::vector<float>& from, std::vector<int8_t>& bytes,
                            std::vector<float>& scales) {
    bytes.resize(from.size());
    scales.resize(from.size() / static_cast<size_t>(head_dim));
    for (size_t row = 0; row < scales.size(); ++row) {
      const size_t at = row * static_cast<size_t>(head_dim);
      portable.to_i8(from.data() + at, bytes.data() + at, &scales[row], head_dim);
    }
  };
  to_bytes(cache.k, cache.k_bytes, cache.k_scales);
  to_bytes(cache.v, cache.v_bytes, cache.v_scales);
  return cache;
}

struct Case {
  int type;
  int32_t head_dim, queries;
  bool exact;  // queries are 0: every key has the weight 1, and sums of values are exact
};

AttentionTile make_tile(const Case& each, const Cache& cache, const std::vector<float>& q,
                        std::vector<float>& out) {
  const void* kept[4][2] = {{cache.k.data(), cache.v.data()},
                            {cache.k_halves.data(), cache.v_halves.data()},
                            {cache.k_halves.data(), cache.v_halves.data()},
                            {cache.k_bytes.data(), cache.v_bytes.data()}};
  AttentionTile tile{};
  tile.num_queries = each.queries;
  tile.head_dim = each.head_dim;
  tile.scale = 0.125f;
  tile.k = kept[each.type][0];
  tile.v = kept[each.type][1];
  tile.k_scales = cache.k_scales.data();
  tile.v_scales = cache.v_scales.data();
  tile.block_table = cache.table.data();
  tile.block_size = kBlockSize;
  tile.block_stride = int64_t{kBlockSize} * each.head_dim;
  for (int32_t i = 0; i < each.queries; ++i) {
    tile.q[i] = q.data() + static_cast<int64_t>(i) * each.head_dim;
    tile.out[i] = out.data() + static_cast<int64_t>(i) * each.head_dim;
    tile.first[i] = i % 4 == 3 ? 17 + i : 0;  // as with a window
    tile.last[i] = 560 + i;
  }
  return tile;
}

// All keys in stretches of kAttentionSplit, merged and finished.
void run(const Kernels& kernels, const Kernels& portable, const Case& each, Outcomes& outcomes) {
  Sequence random;
  const Cache cache = make_cache(portable, each.type, each.head_dim, each.exact, random);
  std::vector<float> q = random.values(int64_t{each.queries} * each.head_dim, each.exact);
  if (each.exact) std::fill(q.begin(), q.end(), 0.0f);
  std::vector<float> out(q.size(), -1.0f), scratch(kAttentionScratch);
  const AttentionTile tile = make_tile(each, cache, q, out);
  const size_t size = static_cast<size_t>(each.queries) * attention_state_size(each.head_dim);
  std::vector<float> state(size), later(size);
  const int32_t end = 560 + each.queries;
  kernels.attention[each.type](tile, 0, kAttentionSplit, state.data(), scratch.data());
  for (int32_t begin = kAttentionSplit; begin < end; begin += kAttentionSplit) {
    kernels.attention[each.type](tile, begin, std::min(begin + kAttentionSplit, end), later.data(),
                                 scratch.data());
    kernels.attention_merge(state.data(), later.data(), each.queries, each.head_dim);
  }
  kernels.attention_finish(tile, state.data());
  // Two scores, each within head_dim roundings of magnitudes that sum up to head_dim / 8; weights of 2^-23
  // each; two weighted sums of at most 600 values of 1, above and below the line.
  const double score = 2.0 * each.head_dim * 0x1p-24 * each.head_dim / 8;
  const double bound = each.exact ? 0 : 2 * (score + 0x1p-22) + 4 * 600 * 0x1p-24;
  outcomes.begin("attention " + std::string(kTypes[each.type]) + (each.exact ? " exact " : " ") +
                     std::to_string(each.head_dim) + " x " + std::to_string(each.queries),
                 bound);
  outcomes.add(out.data(), static_cast<int64_t>(out.size()));
}

}  // namespace

void run_attention_kernels(const Kernels& kernels, const Kernels& portable, Outcomes& outcomes) {
  for (int type = 0; type < 4; ++type)
    for (const int32_t head_dim : {20, 64, 80, 256})
      for (const bool exact : {true, false})
        for (const int32_t queries : {1, 3, 7, kTileQueries})
          if (type < 3 || !exact) run(kernels, portable, {type, head_dim, queries, exact}, outcomes);
}

}  // namespace whippet::cpu
