// The launchers of the CUDA kernels, one or a few a file. Pointers are device memory; arguments are those of
// backend.h. Each puts its work on the queue and returns.
#pragma once

#include <cuda_runtime.h>

#include "backend/cuda/cell.h"
#include "backend/linear_weight.h"
#include "backend/views.h"

namespace whippet::cuda {

struct Queue {
  cudaStream_t stream = nullptr;
  bool early_start = false;  // the device can start a kernel before the one ahead has ended
  int32_t num_sms = 0;
  int32_t shared_bytes = 0;  // most that a block can have
};

// What a kernel reads of a LinearWeight. Dense: [out][columns] of their type, each row on 16 bytes, filled up
// with zeros. int8 and int4: [out / 8][columns / 128] cells, each of 8 rows and 128 columns filled up with
// zeros (cell.h), each with all that belongs to it: codes (int8 1024 bytes, int4 512), scales
// [128 / group][8 rows] fp32 and, where has_min, minima alike.
// A group that is longer than a cell or does not line up with cells is repeated as often as that needs.
struct WeightView {
  LinearKind kind = LinearKind::kF32;
  int32_t out = 0;
  int32_t in = 0;
  int32_t columns = 0;
  int64_t row_bytes = 0;  // dense
  int32_t group = 0;      // columns of a cell that share a scale
  int32_t cells = 0;      // of eight rows
  int32_t cell_bytes = 0;
  int32_t code_offset = 0;  // value = (code - code_offset) * scale + min
  bool has_min = false;
  const uint8_t* codes = nullptr;
  const int32_t* order = nullptr;
  const float* bias = nullptr;
};
WeightView view_of(const LinearWeight& weight);

// row_kernels.cu
void fill_inputs(const Queue& queue, const BatchView& batch, const int32_t* drawn, int32_t* token_ids);
// A copy of a few words, to pinned host memory for one.
void copy_words(const Queue& queue, void* to, const void* from, int32_t words);
void embed(const Queue& queue, const int32_t* ids, const WeightView& table, Mat out);
void rms_norm(const Queue& queue, ConstMat x, const float* weight, int32_t dim, float eps, Mat out);
// x += y, then out = x normed, a row at a time; false where the shapes do not suit the kernel.
bool add_rms_norm(const Queue& queue, ConstMat y, Mat x, const float* weight, float eps, Mat out);
void rope_angles(const Queue& queue, const BatchView& batch, Mat cos_sin);
void rope(const Queue& queue, Mat x, int32_t head_dim, ConstMat cos_sin);
void store_kv(const Queue& queue, const BatchView& batch, ConstMat k, ConstMat v, const KvCacheView& cache);
void silu_mul(const Queue& queue, ConstMat gate_up, Mat out);
void add(const Queue& queue, ConstMat y, Mat x);
void gather_rows(const Queue& queue, ConstMat x, const int32_t* rows, Mat out);
// out[r, c] = x[r, order[c]], 0 where that is -1.
void gather_columns(const Queue& queue, ConstMat x, const int32_t* order, Mat out);

// linear_kernels.cu: any type, any shape; a row's result does not depend on the others. x has w.columns
// columns (gathered, where the weight has an order) or fewer, which count as zeros.
void linear_rows(const Queue& queue, ConstMat x, const WeightView& w, Mat out);
// Rows [first, first + out.rows) of the weight as numbers. Rows of out lie on 16 bytes and are filled up to
// eights of columns with zeros.
void dequantise(const Queue& queue, const WeightView& w, int32_t first, Mat out);

// attention_kernels.cu
struct AttentionScratch {
  float* partial = nullptr;
  size_t floats = 0;
  int32_t* counters = nullptr;  // zero before and after every kernel
  int32_t num_counters = 0;
  bool may_split = true;  // false: a row is summed in one order whatever the batch
};
void attention(const Queue& queue, const BatchView& batch, const AttentionArgs& args,
               const AttentionScratch& scratch);
// What comes before the attention of rows that belong to one sequence each.
struct Rotation {
  const float* cos_sin = nullptr;  // [rows, head_dim]; nullptr: q and k are rotated and stored already
  int64_t cos_sin_stride = 0;
  void* q = nullptr;  // [rows, num_q_heads * head_dim] rotated in place
  void* k = nullptr;  // [rows, num_kv_heads * head_dim] rotated in place, stored
  const void* v = nullptr;
  int64_t q_stride = 0, k_stride = 0, v_stride = 0;
  bool keep = true;  // q and k are left rotated; false: nobody reads them before they are written again
  // Nothing on the queue changes the keys of other rows: they may be read while the kernels ahead run.
  bool settled = false;
};
// Rotates, stores and attends; false where there is no kernel that does all three.
bool rotate_and_attend(const Queue& queue, const BatchView& batch, const AttentionArgs& args,
                       const Rotation& rotation, const AttentionScratch& scratch);

// sample_kernels.cu, sample_top_kernels.cu
struct SampleScratch {
  unsigned long long* best = nullptr;  // [rows, kGreedyParts]
  int32_t* counters = nullptr;         // [rows], zero before and after
  // Of rows that are not greedy: chunks of `chunk` logits each.
  int32_t chunk = 0, chunks = 0;             // at most kMaxChunks
  unsigned long long* chunk_best = nullptr;  // [rows, chunks]
  double* chunk_mass = nullptr;              // [rows, chunks]
  int32_t* wide = nullptr;                   // [rows] whether sample_rows has to draw
  float* saved = nullptr;  // what the lists of each row overwrite, at the offsets of DeviceRow
};
constexpr int32_t kGreedyParts = 64, kMaxChunks = 1024;
constexpr int32_t kMostTop = 256;  // the largest top_k that sample_top always draws itself
// A SampleRow whose lists lie on the device.
struct DeviceRow {
  SampleRow row;
  double uniform = 0;  // the draw from (seed, position)
  int64_t saved_offset = 0;
};
// The largest finite logit of each row, the lowest id among equals.
void sample_greedy(const Queue& queue, const SampleArgs& args, const SampleScratch& scratch);
// Applies the lists and draws, but for rows that it marks in scratch.wide.
void sample_top(const Queue& queue, const SampleArgs& args, const DeviceRow* rows,
                const SampleScratch& scratch);
// After sample_top: draws what it marked, and reports logprobs.
void sample_rows(const Queue& queue, const SampleArgs& args, const DeviceRow* rows,
                 const SampleScratch& scratch);

}  // namespace whippet::cuda
