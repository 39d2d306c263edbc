// Attention on the CPU: which worker computes which queries against which keys. Keys are split at multiples
// of kAttentionSplit of the sequence and the parts merged in order, whoever computes them, so that a row's
// result is the same in a decode step, in any chunk of a prefill, and on any number of threads.
#include <algorithm>
#include <limits>

#include "backend/cpu/cpu_backend.h"
#include "base/math.h"

namespace whippet::cpu {
namespace {

// Neighbouring query heads that read one KV head.
struct HeadRun {
  int32_t first = 0;
  int32_t count = 0;
};

HeadRun next_run(const AttentionArgs& args, int32_t first) {
  HeadRun run{first, 1};
  while (first + run.count < args.num_q_heads && run.count < kTileQueries &&
         args.kv_head_of_q[first + run.count] == args.kv_head_of_q[first])
    ++run.count;
  return run;
}

HeadRun find_run(const AttentionArgs& args, int32_t index) {
  HeadRun run = next_run(args, 0);
  for (; index > 0; --index) run = next_run(args, run.first + run.count);
  return run;
}

int32_t first_key(const AttentionArgs& args, int32_t position) {
  return args.window > 0 ? std::max(0, position - args.window + 1) : 0;
}

// The queries of a run of heads in rows [begin, end) of one sequence.
AttentionTile make_tile(const BatchView& batch, const AttentionArgs& args, HeadRun run, int32_t begin,
                        int32_t end) {
  const KvCacheView& cache = args.cache;
  AttentionTile tile;
  tile.num_queries = 0;
  for (int32_t r = begin; r < end; ++r) {
    for (int32_t h = run.first; h < run.first + run.count; ++h) {
      const int64_t column = static_cast<int64_t>(h) * cache.head_dim;
      tile.q[tile.num_queries] = args.q.row<float>(r) + column;
      tile.out[tile.num_queries] = args.out.row<float>(r) + column;
      tile.first[tile.num_queries] = first_key(args, batch.positions[r]);
      tile.last[tile.num_queries] = batch.positions[r];
      ++tile.num_queries;
    }
  }
  const int64_t head_elements = static_cast<int64_t>(cache.block_size) * cache.head_dim;
  const int64_t head_bytes =
      args.kv_head_of_q[run.first] * head_elements * static_cast<int64_t>(dtype_size(cache.dtype));
  tile.head_dim = cache.head_dim;
  tile.scale = args.scale;
  tile.k = static_cast<const char*>(cache.k) + head_bytes;
  tile.v = static_cast<const char*>(cache.v) + head_bytes;
  const bool scaled = cache.dtype == DType::kI8;
  const int64_t head_rows = int64_t{args.kv_head_of_q[run.first]} * cache.block_size;
  tile.k_scales = scaled ? cache.k_scales + head_rows : nullptr;
  tile.v_scales = scaled ? cache.v_scales + head_rows : nullptr;
  tile.block_table =
      batch.block_table + static_cast<int64_t>(batch.seq_of_token[begin]) * batch.max_blocks_per_seq;
  tile.block_size = cache.block_size;
  tile.block_stride = cache.num_kv_heads * head_elements;
  return tile;
}

// The parts of the sequence that some query of the tile sees.
struct Parts {
  int32_t begin, end;
};
Parts parts_of(const AttentionTile& tile) {  // rows are in order of position
  return {tile.first[0] / kAttentionSplit, tile.last[tile.num_queries - 1] / kAttentionSplit + 1};
}

int kernel_index(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 0;
    case DType::kF16:
      return 1;
    case DType::kBF16:
      return 2;
    case DType::kI8:
      return 3;
    default:
      WH_CHECK(false, "KV cache of {}", dtype_name(dtype));
  }
}

void attend(const Kernels& kernels, const AttentionTile& tile, DType dtype, int32_t part, float* state,
            WorkerScratch& scratch) {
  kernels.attention[kernel_index(dtype)](tile, part * kAttentionSplit, (part + 1) * kAttentionSplit, state,
                                         scratch.kernel.as<float>());
}

void attend_all(const Kernels& kernels, const AttentionTile& tile, DType dtype, WorkerScratch& scratch) {
  const Parts parts = parts_of(tile);
  auto* state = scratch.states.as<float>();
  float* more = state + static_cast<int64_t>(kTileQueries) * attention_state_size(tile.head_dim);
  attend(kernels, tile, dtype, parts.begin, state, scratch);
  for (int32_t part = parts.begin + 1; part < parts.end; ++part) {
    attend(kernels, tile, dtype, part, more, scratch);
    kernels.attention_merge(state, more, tile.num_queries, tile.head_dim);
  }
  kernels.attention_finish(tile, state);
}

void check_shapes(const BatchView& batch, const AttentionArgs& args) {
  const KvCacheView& cache = args.cache;
  WH_CHECK(cache.head_dim > 0 && cache.head_dim <= kMaxHeadDim, "head_dim {}", cache.head_dim);
  WH_CHECK(args.q.dtype == DType::kF32 && args.out.dtype == DType::kF32);
  WH_CHECK(args.q.cols == args.num_q_heads * cache.head_dim && args.out.cols == args.q.cols, "q [{}, {}]",
           args.q.rows, args.q.cols);
  WH_CHECK(cache.dtype != DType::kI8 || (cache.k_scales != nullptr && cache.v_scales != nullptr));
  WH_CHECK(args.q.rows >= batch.num_tokens && args.out.rows >= batch.num_tokens);
  for (int32_t h = 0; h < args.num_q_heads; ++h)
    WH_CHECK(args.kv_head_of_q[h] >= 0 && args.kv_head_of_q[h] < cache.num_kv_heads, "head {} reads {}", h,
             args.kv_head_of_q[h]);
}

}  // namespace

void CpuBackend::attention(const BatchView& batch, const AttentionArgs& args) {
  check_shapes(batch, args);
  int32_t num_runs = 0, longest_run = 0;
  for (HeadRun run; run.first + run.count < args.num_q_heads; ++num_runs) {
    run = next_run(args, run.first + run.count);
    longest_run = std::max(longest_run, run.count);
  }
  const int32_t rows = batch.num_tokens, tiles_wanted = 4 * pool_.num_threads();
  if (rows * num_runs < tiles_wanted && attend_split(batch, args, num_runs, longest_run)) return;
  const int32_t rows_per_tile = std::clamp(rows * num_runs / tiles_wanted, 1, kTileQueries / longest_run);
  pool_.run(ceil_div(rows, rows_per_tile) * num_runs, [&](int32_t task, int32_t worker) {
    const HeadRun run = find_run(args, task % num_runs);
    int32_t begin = task / num_runs * rows_per_tile;
    const int32_t task_end = std::min(rows, begin + rows_per_tile);
    while (begin < task_end) {
      int32_t end = begin + 1;
      while (end < task_end && batch.seq_of_token[end] == batch.seq_of_token[begin]) ++end;
      attend_all(kernels_, make_tile(batch, args, run, begin, end), args.cache.dtype, scratch_[worker]);
      begin = end;
    }
  });
}

// Few rows with long contexts: the parts of a row are shared too. False where there is nothing to share or no
// room for the states.
bool CpuBackend::attend_split(const BatchView& batch, const AttentionArgs& args, int32_t num_runs,
                              int32_t longest_run) {
  const int32_t units = batch.num_tokens * num_runs;
  int32_t most_parts = 0;
  for (int32_t r = 0; r < batch.num_tokens; ++r) {
    const int32_t position = batch.positions[r];
    most_parts =
        std::max(most_parts, position / kAttentionSplit - first_key(args, position) / kAttentionSplit + 1);
  }
  const int64_t state = static_cast<int64_t>(longest_run) * attention_state_size(args.cache.head_dim);
  if (most_parts < 2 || pool_.num_threads() < 2) return false;
  if (static_cast<size_t>(units * state * most_parts) * sizeof(float) > split_states_.bytes()) return false;
  const auto tile_of = [&](int32_t unit) {
    const int32_t row = unit / num_runs;
    return make_tile(batch, args, find_run(args, unit % num_runs), row, row + 1);
  };
  const auto state_of = [&](int32_t unit, int32_t part) {
    return split_states_.as<float>() + (static_cast<int64_t>(unit) * most_parts + part) * state;
  };
  pool_.run(units * most_parts, [&](int32_t task, int32_t worker) {
    const int32_t unit = task / most_parts, part = task % most_parts;
    const AttentionTile tile = tile_of(unit);
    const Parts parts = parts_of(tile);
    if (parts.begin + part < parts.end)
      attend(kernels_, tile, args.cache.dtype, parts.begin + part, state_of(unit, part), scratch_[worker]);
  });
  for (int32_t unit = 0; unit < units; ++unit) {
    const AttentionTile tile = tile_of(unit);
    const Parts parts = parts_of(tile);
    for (int32_t part = 1; parts.begin + part < parts.end; ++part)
      kernels_.attention_merge(state_of(unit, 0), state_of(unit, part), tile.num_queries, tile.head_dim);
    kernels_.attention_finish(tile, state_of(unit, 0));
  }
  return true;
}

}  // namespace whippet::cpu
