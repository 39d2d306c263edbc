// Softmax(q k^T) v of a tile of queries over a stretch of the paged cache, one chunk of keys at a time with a
// running maximum (Milakov and Gimelshein 2018; Dao et al. 2022). Chunks begin at fixed positions of the
// sequence and every sum runs over keys in rising order, so that a query's result does not depend on which
// other queries are in its tile.
#include "backend/cpu/exp.h"
#include "backend/cpu/kernel_functions.h"
#include "simd_convert.h"
#include "simd_math.h"

namespace whippet::cpu::WHIPPET_ISA {
namespace {

constexpr int kChunk = kAttentionChunk;

WH_SIMD int32_t smaller(int32_t a, int32_t b) { return a < b ? a : b; }
WH_SIMD int32_t larger(int32_t a, int32_t b) { return a > b ? a : b; }
WH_SIMD int32_t padded(int32_t head_dim) { return (head_dim + 15) / 16 * 16; }

struct FromF32 {
  using Element = float;
  static constexpr bool kScaled = false;  // by one factor a row
  WH_SIMD Vec read(const float* p, int n) { return n == 16 ? load(p) : load_n(p, n); }
};
struct FromF16 {
  using Element = uint16_t;
  static constexpr bool kScaled = false;
  WH_SIMD Vec read(const uint16_t* p, int n) { return load_f16(p, n); }
};
struct FromBf16 {
  using Element = uint16_t;
  static constexpr bool kScaled = false;
  WH_SIMD Vec read(const uint16_t* p, int n) { return load_bf16(p, n); }
};
struct FromI8 {
  using Element = int8_t;
  static constexpr bool kScaled = true;
  WH_SIMD Vec read(const int8_t* p, int n) { return load_i8(p, n); }
};

// Elements of a row as what they stand for.
template <class From>
WH_SIMD Vec read(const typename From::Element* p, int n, const float* scale) {
  if constexpr (From::kScaled) return From::read(p, n) * broadcast(*scale);
  return From::read(p, n);
}

// Views into a worker's scratch.
struct Scratch {
  float* q;             // [queries][padded], scaled
  float* keys;          // [kChunk / 16][padded][16]: 16 keys side by side for each dimension
  float* values;        // [kChunk][padded]
  float* scores;        // [queries][kChunk]
  float* key_scales;    // [kChunk] of int8
  float* value_scales;  // [kChunk]
};

WH_SIMD Scratch scratch_views(float* scratch, int32_t dim) {
  Scratch views;
  views.q = scratch;
  views.keys = views.q + kTileQueries * dim;
  views.values = views.keys + kChunk * dim;
  views.scores = views.values + kChunk * dim;
  views.key_scales = views.scores + kTileQueries * kChunk;
  views.value_scales = views.key_scales + kChunk;
  return views;
}

// Element offsets of the rows of positions [low, high) in the cache of this head.
WH_SIMD void find_rows(const AttentionTile& tile, int32_t low, int32_t high, int64_t* rows) {
  int32_t block = low / tile.block_size, slot = low % tile.block_size;
  for (int32_t t = low; t < high; ++block, slot = 0) {
    const int32_t stop = smaller(high, t + tile.block_size - slot);
    int64_t row = tile.block_table[block] * tile.block_stride + static_cast<int64_t>(slot) * tile.head_dim;
    for (; t < stop; ++t, row += tile.head_dim) *rows++ = row;
  }
}

// Scales of the rows of positions [low, high).
WH_SIMD void find_scales(const AttentionTile& tile, int32_t low, int32_t high, float* keys, float* values) {
  const int64_t rows_a_block = tile.block_stride / tile.head_dim;
  int32_t block = low / tile.block_size, slot = low % tile.block_size;
  for (int32_t t = low; t < high; ++block, slot = 0) {
    const int32_t stop = smaller(high, t + tile.block_size - slot);
    int64_t row = tile.block_table[block] * rows_a_block + slot;
    for (; t < stop; ++t, ++row) {
      *keys++ = tile.k_scales[row];
      *values++ = tile.v_scales[row];
    }
  }
}

// 16 keys, columns [d, d + n), side by side; those outside [first, last) are 0.
template <class From>
void load_keys(const typename From::Element* k, const int64_t* rows, const float* scales, int first, int last,
               int n, float* to) {
  Vec columns[16];
  if (first <= 0 && last >= 16) {
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) columns[i] = read<From>(k + rows[i], n, scales + i);
  } else {
    for (int i = 0; i < 16; ++i)
      columns[i] = i >= first && i < last ? read<From>(k + rows[i], n, scales + i) : zero();
  }
  transpose(columns);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) store(to + i * 16, columns[i]);
}

// Keys and values of positions [low, high), which lie in the chunk that begins at `chunk`.
template <class From>
void load_chunk(const AttentionTile& tile, int32_t chunk, int32_t low, int32_t high, const Scratch& scratch) {
  const int32_t dim = padded(tile.head_dim), whole = tile.head_dim / 16 * 16;
  const auto* k = static_cast<const typename From::Element*>(tile.k);
  const auto* v = static_cast<const typename From::Element*>(tile.v);
  int64_t rows[kChunk];
  find_rows(tile, low, high, rows + (low - chunk));
  const float *key_scales = scratch.key_scales, *value_scales = scratch.value_scales;
  if constexpr (From::kScaled)
    find_scales(tile, low, high, scratch.key_scales + (low - chunk), scratch.value_scales + (low - chunk));
  for (int32_t group = (low - chunk) / 16 * 16; group < high - chunk; group += 16) {
    float* keys = scratch.keys + static_cast<int64_t>(group) * dim;
    const int first = low - chunk - group, last = high - chunk - group;
    for (int32_t d = 0; d < whole; d += 16)
      load_keys<From>(k + d, rows + group, key_scales + group, first, last, 16, keys + d * 16);
    if (whole < dim)
      load_keys<From>(k + whole, rows + group, key_scales + group, first, last, tile.head_dim - whole,
                      keys + whole * 16);
  }
  for (int32_t t = low - chunk; t < high - chunk; ++t) {
    float* values = scratch.values + static_cast<int64_t>(t) * dim;
    for (int32_t d = 0; d < whole; d += 16)
      store(values + d, read<From>(v + rows[t] + d, 16, value_scales + t));
    if (whole < dim)
      store(values + whole, read<From>(v + rows[t] + whole, tile.head_dim - whole, value_scales + t));
  }
}

// Asks for keys and values of positions [low, high), which are needed soon: blocks lie anywhere in memory, so
// that the machine does not guess them.
template <class From>
void prefetch_chunk(const AttentionTile& tile, int32_t low, int32_t high) {
  constexpr int64_t kLine = 64 / sizeof(typename From::Element);
  const auto* k = static_cast<const typename From::Element*>(tile.k);
  const auto* v = static_cast<const typename From::Element*>(tile.v);
  for (int32_t t = low; t < high;) {
    const int32_t slot = t % tile.block_size, count = smaller(high - t, tile.block_size - slot);
    const int64_t begin = tile.block_table[t / tile.block_size] * tile.block_stride +
                          static_cast<int64_t>(slot) * tile.head_dim;
    for (int64_t i = 0; i < static_cast<int64_t>(count) * tile.head_dim; i += kLine) {
      __builtin_prefetch(k + begin + i);
      __builtin_prefetch(v + begin + i);
    }
    if constexpr (From::kScaled) {
      const int64_t row = begin / tile.head_dim;
      __builtin_prefetch(tile.k_scales + row);
      __builtin_prefetch(tile.v_scales + row);
    }
    t += count;
  }
}

// Scores of kQueries queries against kGroups * 16 keys.
template <int kQueries, int kGroups>
WH_SIMD void score_block(const float* q, const float* keys, int32_t dim, float* scores) {
  Vec dots[kQueries][kGroups];
#pragma GCC unroll 8
  for (int i = 0; i < kQueries; ++i)
#pragma GCC unroll 8
    for (int g = 0; g < kGroups; ++g) dots[i][g] = zero();
  for (int64_t d = 0; d < dim; ++d) {
    Vec key[kGroups];
#pragma GCC unroll 8
    for (int g = 0; g < kGroups; ++g) key[g] = load(keys + (static_cast<int64_t>(g) * dim + d) * 16);
#pragma GCC unroll 8
    for (int i = 0; i < kQueries; ++i) {
      const Vec each = broadcast(q[static_cast<int64_t>(i) * dim + d]);
#pragma GCC unroll 8
      for (int g = 0; g < kGroups; ++g) dots[i][g] = fma(each, key[g], dots[i][g]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kQueries; ++i)
#pragma GCC unroll 8
    for (int g = 0; g < kGroups; ++g) store(scores + i * kChunk + g * 16, dots[i][g]);
}

// Queries against groups [begin, end) of 16 keys. Few queries take several groups at once, or their sums
// would wait for each other.
template <int kQueries>
void score_queries(const float* q, const Scratch& scratch, int32_t dim, int32_t begin, int32_t end,
                   float* scores) {
  constexpr int kGroups = kQueries <= 3 ? kFewScoreGroups : 1;
  int32_t group = begin;
  const auto keys = [&] { return scratch.keys + static_cast<int64_t>(group) * dim * 16; };
  for (; group + kGroups <= end; group += kGroups)
    score_block<kQueries, kGroups>(q, keys(), dim, scores + group * 16);
  for (; group < end; ++group) score_block<kQueries, 1>(q, keys(), dim, scores + group * 16);
}

template <int kQueries>
void score_last(int32_t count, const float* q, const Scratch& scratch, int32_t dim, int32_t begin,
                int32_t end, float* scores) {
  if (count == kQueries) return score_queries<kQueries>(q, scratch, dim, begin, end, scores);
  if constexpr (kQueries > 1) score_last<kQueries - 1>(count, q, scratch, dim, begin, end, scores);
}

void score_chunk(int32_t num_queries, int32_t dim, int32_t begin, int32_t end, const Scratch& scratch) {
  int32_t i = 0;
  const auto q = [&] { return scratch.q + static_cast<int64_t>(i) * dim; };
  for (; i + kScoreQueries <= num_queries; i += kScoreQueries)
    score_queries<kScoreQueries>(q(), scratch, dim, begin, end, scratch.scores + i * kChunk);
  score_last<kScoreQueries - 1>(num_queries - i, q(), scratch, dim, begin, end, scratch.scores + i * kChunk);
}

// Turns one query's scores into weights under the new running maximum and rescales what it has so far.
void weigh_query(const AttentionTile& tile, int32_t query, int32_t chunk, int32_t group_begin,
                 int32_t group_end, float* scores, float* state, int32_t dim) {
  const float none = -__builtin_inff();
  const int32_t first = larger(tile.first[query] - chunk, 0);
  const int32_t last = smaller(tile.last[query] - chunk, kChunk - 1);
  for (int32_t t = group_begin * 16; t < group_end * 16; ++t)
    if (t < first || t > last) scores[t] = first <= last ? none : 0;
  if (first > last) return;  // it sees none of these keys
  Vec most = load(scores + group_begin * 16);
  for (int32_t group = group_begin + 1; group < group_end; ++group)
    most = max(load(scores + group * 16), most);
  const float before = state[dim];
  float now = largest(most);
  if (!(now > before)) now = before;
  Vec total = zero();
  for (int32_t group = group_begin; group < group_end; ++group) {
    const Vec p = exp(load(scores + group * 16) - broadcast(now));
    store(scores + group * 16, p);
    total = total + p;
  }
  float factor[16];
  store(factor, exp(broadcast(before - now)));
  state[dim + 1] = __builtin_fmaf(state[dim + 1], factor[0], sum(total));
  if (now != before)
    for (int32_t d = 0; d < dim; d += 16) store(state + d, load(state + d) * broadcast(factor[0]));
  state[dim] = now;
}

// Adds the weighted values to kVectors * 16 dimensions of kQueries queries.
template <int kQueries, int kVectors>
WH_SIMD void mix_block(const float* scores, const float* values, int32_t dim, int32_t low, int32_t high,
                       float* state, int64_t state_stride) {
  Vec sums[kQueries][kVectors];
#pragma GCC unroll 8
  for (int i = 0; i < kQueries; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) sums[i][j] = load(state + i * state_stride + j * 16);
  for (int64_t t = low; t < high; ++t) {
    Vec value[kVectors];
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) value[j] = load(values + t * dim + j * 16);
#pragma GCC unroll 8
    for (int i = 0; i < kQueries; ++i) {
      const Vec p = broadcast(scores[i * kChunk + t]);
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; ++j) sums[i][j] = fma(p, value[j], sums[i][j]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kQueries; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) store(state + i * state_stride + j * 16, sums[i][j]);
}

template <int kQueries>
void mix_queries(const float* scores, const float* values, int32_t dim, int32_t low, int32_t high,
                 float* state, int64_t state_stride) {
  int32_t d = 0;
  for (; d + kMixVectors * 16 <= dim; d += kMixVectors * 16)
    mix_block<kQueries, kMixVectors>(scores, values + d, dim, low, high, state + d, state_stride);
  for (; d < dim; d += 16)
    mix_block<kQueries, 1>(scores, values + d, dim, low, high, state + d, state_stride);
}

template <int kQueries>
void mix_last(int32_t count, const float* scores, const float* values, int32_t dim, int32_t low, int32_t high,
              float* state, int64_t state_stride) {
  if (count == kQueries) return mix_queries<kQueries>(scores, values, dim, low, high, state, state_stride);
  if constexpr (kQueries > 1)
    mix_last<kQueries - 1>(count, scores, values, dim, low, high, state, state_stride);
}

template <class From>
void attention(const AttentionTile& tile, int32_t begin, int32_t end, float* state, float* scratch_floats) {
  const int32_t dim = padded(tile.head_dim), queries = tile.num_queries;
  const int64_t stride = attention_state_size(tile.head_dim);
  const Scratch scratch = scratch_views(scratch_floats, dim);
  int32_t tile_first = tile.first[0], tile_last = tile.last[0];
  for (int32_t i = 0; i < queries; ++i) {
    tile_first = smaller(tile_first, tile.first[i]);
    tile_last = larger(tile_last, tile.last[i]);
    for (int32_t d = 0; d < dim; d += 16) {
      const Vec q = load_n(tile.q[i] + d, smaller(16, tile.head_dim - d));
      store(scratch.q + static_cast<int64_t>(i) * dim + d, q * broadcast(tile.scale));
      store(state + i * stride + d, zero());
    }
    state[i * stride + dim] = -__builtin_inff();
    state[i * stride + dim + 1] = 0;
  }
  for (int32_t chunk = begin; chunk < end; chunk += kChunk) {
    const int32_t low = larger(chunk, tile_first);
    const int32_t high = smaller(smaller(chunk + kChunk, end), tile_last + 1);
    if (low >= high) continue;
    load_chunk<From>(tile, chunk, low, high, scratch);
    if (queries <= kTileQueries / 2)
      prefetch_chunk<From>(tile, high, smaller(smaller(high + kChunk, end), tile_last + 1));
    const int32_t group_begin = (low - chunk) / 16, group_end = (high - chunk + 15) / 16;
    score_chunk(queries, dim, group_begin, group_end, scratch);
    for (int32_t i = 0; i < queries; ++i)
      weigh_query(tile, i, chunk, group_begin, group_end, scratch.scores + i * kChunk, state + i * stride,
                  dim);
    int32_t i = 0;
    for (; i + kMixQueries <= queries; i += kMixQueries)
      mix_queries<kMixQueries>(scratch.scores + i * kChunk, scratch.values, dim, low - chunk, high - chunk,
                               state + i * stride, stride);
    mix_last<kMixQueries - 1>(queries - i, scratch.scores + i * kChunk, scratch.values, dim, low - chunk,
                              high - chunk, state + i * stride, stride);
  }
}

}  // namespace

void attention_f32(const AttentionTile& tile, int32_t begin, int32_t end, float* state, float* scratch) {
  attention<FromF32>(tile, begin, end, state, scratch);
}
void attention_f16(const AttentionTile& tile, int32_t begin, int32_t end, float* state, float* scratch) {
  attention<FromF16>(tile, begin, end, state, scratch);
}
void attention_bf16(const AttentionTile& tile, int32_t begin, int32_t end, float* state, float* scratch) {
  attention<FromBf16>(tile, begin, end, state, scratch);
}
void attention_i8(const AttentionTile& tile, int32_t begin, int32_t end, float* state, float* scratch) {
  attention<FromI8>(tile, begin, end, state, scratch);
}

void attention_merge(float* into, const float* from, int32_t num_queries, int32_t head_dim) {
  const int32_t dim = padded(head_dim);
  const int64_t stride = attention_state_size(head_dim);
  for (int32_t i = 0; i < num_queries; ++i, into += stride, from += stride) {
    const float none = -__builtin_inff(), most = into[dim] > from[dim] ? into[dim] : from[dim];
    if (from[dim] == none) continue;
    float factors[2][16];
    store(factors[0], exp(broadcast(into[dim] - most)));
    store(factors[1], exp(broadcast(from[dim] - most)));
    for (int32_t d = 0; d < dim; d += 16)
      store(into + d,
            fma(load(from + d), broadcast(factors[1][0]), load(into + d) * broadcast(factors[0][0])));
    into[dim + 1] = into[dim + 1] * factors[0][0] + from[dim + 1] * factors[1][0];
    into[dim] = most;
  }
}

void attention_finish(const AttentionTile& tile, const float* state) {
  const int32_t dim = padded(tile.head_dim);
  for (int32_t i = 0; i < tile.num_queries; ++i, state += attention_state_size(tile.head_dim)) {
    const Vec factor = broadcast(1.0f / state[dim + 1]);
    for (int32_t d = 0; d < dim; d += 16)
      store_n(tile.out[i] + d, load(state + d) * factor, smaller(16, tile.head_dim - d));
  }
}

}  // namespace whippet::cpu::WHIPPET_ISA
