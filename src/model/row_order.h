// Where the rows of a projection lie in a file that does not keep them in the decoder's order. Element r of
// the result is the file's row that belongs at r. Used by the loader.
#pragma once

#include <cstdint>
#include <vector>

namespace whippet {

// GGUF's q and k of some architectures interleave the two halves of each head, for RoPE over neighbouring
// pairs (llama.cpp's converter: reshape(heads, 2, head_dim / 2, in).swapaxes(1, 2)). Here pairs are halves.
std::vector<int32_t> interleaved_rows(int32_t num_heads, int32_t head_dim);

// InternLM2's wqkv holds, per KV group, its query heads, then K, then V. Here: all of q, then k, then v.
std::vector<int32_t> packed_qkv_rows(int32_t num_q_heads, int32_t num_kv_heads, int32_t head_dim);

}  // namespace whippet
