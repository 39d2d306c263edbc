// The hot loops of the CPU backend as one table of functions per instruction set. Their files are compiled
// once per set, each in a namespace of its own, and include nothing but PODs: an inline function shared with
// the rest of the program could be merged by the linker into a copy that this machine cannot run.
#pragma once

#include <cstdint>

#include "backend/cpu/linear_tasks.h"

namespace whippet::cpu {

constexpr int32_t kMaxHeadDim = 256;
constexpr int32_t kTileQueries = 32;       // queries of one attention tile
constexpr int32_t kAttentionChunk = 64;    // keys whose scores are held at once
constexpr int32_t kAttentionSplit = 256;   // keys from one merge to the next, a multiple of kAttentionChunk
constexpr int32_t kLinearChunk = 512;      // columns that are widened at once
constexpr int32_t kMaxGroup = 256;         // inputs that share a scale at most
constexpr int32_t kLinearBlockPanels = 4;  // panels that are widened at once
constexpr int32_t kExpBlock = 1024;        // logits whose weights are summed together

// Floats that one worker needs between calls of a kernel.
constexpr int32_t kLinearScratch = kLinearChunk * kLinearBlockPanels * 16;
constexpr int32_t kAttentionScratch =
    (kTileQueries + 2 * kAttentionChunk) * kMaxHeadDim + (kTileQueries + 2) * kAttentionChunk;

// Up to kTileQueries queries of one sequence that read one KV head, against keys [begin, end).
struct AttentionTile {
  const float* q[kTileQueries];  // [head_dim] each
  float* out[kTileQueries];      // [head_dim] each
  int32_t first[kTileQueries];   // the keys that a query sees
  int32_t last[kTileQueries];
  int32_t num_queries, head_dim;
  float scale;
  const void* k;  // of this KV head in block 0
  const void* v;
  const float* k_scales;  // the same; int8 only
  const float* v_scales;
  const int32_t* block_table;
  int32_t block_size;
  int64_t block_stride;  // elements from one block to the next
};

// What softmax over some keys came to, per query: head_dim (rounded up to 16) sums of p v, then the largest
// score, then the sum of p.
constexpr int32_t attention_state_size(int32_t head_dim) { return (head_dim + 15) / 16 * 16 + 16; }

// The products of integers, which some sets have better instructions for.
struct DotKernels {
  // int8, int4: any number of rows, any run of panels; blocks of `panels` fill its tiles.
  void (*linear_coded[2])(const CodedTask& task);
  int32_t panels;
  int32_t few_rows, few_panels;  // and where there are no more rows, blocks of few_panels
  // One row for linear_coded: q [groups * group_columns] and its groups.
  void (*round_inputs)(const float* x, const GroupShape& shape, int16_t* q, InputGroup* groups);
  double (*burst)(int64_t rounds, float* sink);  // what a core can do at most, as fma_burst
};

struct Kernels {
  const char* name;

  // fp32, fp16, bf16. Few: up to few_rows rows, any run of panels. Many: more rows; panels in blocks of
  // kLinearBlockPanels. scratch [kLinearScratch].
  void (*linear_few[3])(const LinearTask& task);
  void (*linear_many[3])(const LinearTask& task, float* scratch);
  int32_t few_rows;
  DotKernels dots;
  // bf16 in pairs; nullptr where the machine has no instruction for it, and linear_few[2] is used instead.
  void (*linear_pairs)(const PairTask& task);
  int32_t pair_panels;

  void (*rms_norm)(const float* x, const float* weight, int32_t dim, float eps, float* out);
  void (*rope)(float* head, const float* cos_sin, int32_t head_dim);
  void (*silu_mul)(const float* gate, const float* up, float* out, int32_t n);
  void (*add)(const float* y, float* x, int32_t n);
  void (*to_f16)(const float* from, uint16_t* to, int32_t n);
  void (*to_bf16)(const float* from, uint16_t* to, int32_t n);
  // A row of an int8 KV cache and its scale (KvCacheView).
  void (*to_i8)(const float* from, int8_t* to, float* scale, int32_t n);
  // e^x within 2^-23 relative; 0 below -87.3, e^88 above 88.
  void (*exp)(const float* x, float* out, int32_t n);

  // By the cache's type: fp32, fp16, bf16, int8. Sets state [num_queries][attention_state_size] from the keys
  // [begin, end), at most kAttentionSplit. scratch [kAttentionScratch].
  void (*attention[4])(const AttentionTile& tile, int32_t begin, int32_t end, float* state, float* scratch);
  // Adds the state of later keys to that of earlier ones.
  void (*attention_merge)(float* into, const float* from, int32_t num_queries, int32_t head_dim);
  void (*attention_finish)(const AttentionTile& tile, const float* state);

  // Replaces what is not finite by -inf and returns the largest (-inf: nothing was finite).
  float (*clean_max)(float* x, int32_t n);
  // e^((x - max) * inverse_temperature): into weights [n], their sums by kExpBlock into block_sums, and the
  // sum of those in order.
  double (*softmax_weights)(const float* x, int32_t n, float max, float inverse_temperature, float* weights,
                            double* block_sums);
  // Writes the indices with x[i] >= threshold in rising order; returns how many.
  int32_t (*find_at_least)(const float* x, int32_t n, float threshold, int32_t* indices);
  int32_t (*count_greater)(const float* x, int32_t n, float threshold);

  // What a core can do at most (probe.h): returns how many operations it did; reads count floats.
  double (*fma_burst)(int64_t rounds, float* sink);
  double (*pair_burst)(int64_t rounds, float* sink);  // products of bf16; nullptr as linear_pairs
  void (*read_burst)(const float* data, int64_t count, float* sink);
};

}  // namespace whippet::cpu
