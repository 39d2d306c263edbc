// What the attention kernels share: their arguments and where a key lies in the paged cache.
#pragma once

#include <cfloat>

#include "backend/cuda/launch.cuh"

namespace whippet::cuda {

constexpr float kNone = -FLT_MAX;  // a score of nothing

struct AttendArgs {
  BatchView batch;
  KvCacheView cache;
  const void* q;
  void* out;
  int64_t q_stride, out_stride;
  const int32_t* kv_head_of_q;
  int32_t num_q_heads, window;
  float scale;
  Rotation rotation;
  bool prompts = false;  // sequences with kPromptRows rows or more are left to attend_prompts
};

constexpr int32_t kPromptRows = 16;
__device__ __forceinline__ bool is_prompt(const BatchView& batch, int32_t seq) {
  return batch.row_begin[seq + 1] - batch.row_begin[seq] >= kPromptRows;
}

__device__ __forceinline__ int64_t cache_row(const AttendArgs& a, const int32_t* table, int32_t t,
                                             int32_t head) {
  const int64_t block = table[t / a.cache.block_size];
  return ((block * a.cache.num_kv_heads + head) * a.cache.block_size + t % a.cache.block_size) *
         a.cache.head_dim;
}

// The first key that a query at `position` sees.
__device__ __forceinline__ int32_t first_key(const AttendArgs& a, int32_t position) {
  return a.window > 0 ? max(0, position - a.window + 1) : 0;
}

__device__ __forceinline__ float exp2_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// split_attention_kernels.cu: fp16 or bf16 whose cache has the same type, head_dim 64 or 128.
void attend_split(const Queue& queue, const AttendArgs& a, DType dtype, const AttentionScratch& scratch);
// prefill_attention_kernels.cu: the same for sequences with kPromptRows rows or more; others are left alone.
// The scale is above 0.
void attend_prompts(const Queue& queue, const AttendArgs& a, DType dtype, const AttentionScratch& scratch);

}  // namespace whippet::cuda
