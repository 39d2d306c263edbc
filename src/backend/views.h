// PODs that cross the device seam: what kernels read and write. Fixed-width ints, shapes in comments, no
// behaviour.
#pragma once

#include <cstdint>

#include "tensor/mat.h"

namespace whippet {

// The rows of one step. Rows of a sequence are consecutive and in order of position. Rows at position -1 only
// fill up the batch: nothing is stored for them and nothing depends on what they compute.
struct BatchView {
  int32_t num_tokens = 0;
  int32_t num_seqs = 0;
  int32_t num_logits = 0;
  int32_t max_blocks_per_seq = 0;
  const int32_t* token_ids = nullptr;     // [num_tokens]
  const int32_t* sources = nullptr;       // [num_tokens] see fill_inputs; may be nullptr where nobody asks
  const int32_t* positions = nullptr;     // [num_tokens] absolute, from 0
  const int32_t* seq_of_token = nullptr;  // [num_tokens] index into the sequences of this step
  const int32_t* row_begin = nullptr;     // [num_seqs + 1] rows [row_begin[s], row_begin[s + 1]) belong to s
  const int32_t* kv_len = nullptr;  // [num_seqs] tokens of s in the cache once this step has stored its own
  const int32_t* block_table =
      nullptr;  // [num_seqs, max_blocks_per_seq] block numbers; entries no layer reads may be -1
  const int32_t* logit_rows = nullptr;  // [num_logits] the rows whose logits are wanted, ascending
  const float* inv_freq = nullptr;      // [num_seqs, head_dim / 2] RoPE frequencies of each sequence
};

// The paged cache of one layer. K of token t of a sequence: block b = block_table[t / block_size], and in it
// row r = (b * num_kv_heads + h) * block_size + t % block_size: k[r * head_dim + d]; V likewise.
// int8: each row has a scale of its own, and K is k[r * head_dim + d] * k_scales[r] in fp32. Stored from a
// row x with m its largest |x|: the scale m / 127 and the integers nearest to x * (127 / m) (fp32, ties to
// even); 0 where m is not above 1e-30; a scale of NaN where something is not finite.
struct KvCacheView {
  void* k = nullptr;  // [num_blocks, num_kv_heads, block_size, head_dim]
  void* v = nullptr;  // the same
  DType dtype = DType::kF32;
  int32_t num_blocks = 0;
  int32_t block_size = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  float* k_scales = nullptr;  // [num_blocks, num_kv_heads, block_size]; int8 only
  float* v_scales = nullptr;  // the same
};

struct AttentionArgs {
  ConstMat q;  // [num_tokens, num_q_heads * head_dim], rotated
  KvCacheView cache;
  const int32_t* kv_head_of_q = nullptr;  // [num_q_heads] which KV head of this cache each query head reads
  int32_t num_q_heads = 0;
  float scale = 0;
  int32_t window = 0;  // query at position p sees keys p - window < j <= p; 0: all j <= p
  Mat out;             // [num_tokens, num_q_heads * head_dim]
};

// How one row of logits becomes a token. Order: bias and bans, mask, penalties, then greedy (temperature 0)
// or temperature, min_p, top_k, top_p and a draw by counter-based randomness from (seed, position). Only
// finite logits can be drawn; among equals the lower id comes first; min_p and top_p look at what temperature
// left.
struct SampleRow {
  float temperature = 0;
  float top_p = 1;
  float min_p = 0;
  int32_t top_k = 0;  // 0: off
  float repetition_penalty = 1;
  float presence_penalty = 0;
  float frequency_penalty = 0;
  int32_t num_logprobs = -1;  // -1: none; 0: of the token; n: and of the n most likely
  uint64_t seed = 0;
  int64_t position = 0;  // of the token to be drawn
  int32_t num_seen = 0;
  const int32_t* seen_ids = nullptr;  // [num_seen] distinct tokens of prompt and output (repetition_penalty)
  const int32_t* output_counts =
      nullptr;  // [num_seen] how often each stands in the output (presence, frequency)
  int32_t num_bias = 0;
  const int32_t* bias_ids = nullptr;  // [num_bias]
  const float* bias = nullptr;        // [num_bias] added to the logit; -inf bans
  const uint32_t* mask = nullptr;     // [ceil(vocab / 32)] bit 1: allowed; nullptr: all
};

struct SampleArgs {
  Mat logits;                       // [rows, vocab] fp32; overwritten
  const SampleRow* rows = nullptr;  // [logits.rows] in host memory, and so is what it points to
  int32_t vocab_used = 0;           // ids from here on are padding of the table and are never drawn
  int32_t max_logprobs = 0;         // row length of top_ids / top_logprobs
  int32_t* tokens = nullptr;        // out [rows]; -1 where a row has no finite logit (a broken model)
  // Out, from the logits as they came, and only of rows with num_logprobs >= 0 (others are left alone):
  float* logprobs = nullptr;      // [rows] of the token, -inf for token -1; may be nullptr
  int32_t* ranks = nullptr;       // [rows] 1 + how many logits are larger, 0 for token -1; may be nullptr
  int32_t* top_ids = nullptr;     // [rows, max_logprobs] by falling logprob; -1 from num_logprobs on
  float* top_logprobs = nullptr;  // [rows, max_logprobs]; -inf from num_logprobs on
};

}  // namespace whippet
