// The slow, obviously right twin of every op of the seam, on host memory, with sums in double. It is the
// oracle of the op tests and no backend runs on it. Matrices are fp32; arguments are those of backend.h.
#pragma once

#include <vector>

#include "backend/linear_weight.h"
#include "backend/views.h"
#include "tensor/mat.h"

namespace whippet::reference {

// [out, in] row-major.
std::vector<float> dequantise(const CanonicalLinear& weight);

void fill_inputs(const BatchView& batch, const int32_t* drawn, int32_t* token_ids);
void embed(const int32_t* ids, const CanonicalLinear& table, Mat out);
void rms_norm(ConstMat x, const float* weight, int32_t dim, float eps, Mat out);
void linear(ConstMat x, const CanonicalLinear& w, Mat out);
// What a kernel that rounds its inputs sees of x, by packed.input_type. kF32: x. kBF16: the nearest bf16.
// kI8: in each group of packed columns q * s, with s = m / 32767, m the largest |x| in it and q the integer
// nearest to x * (32767 / m) (all in fp32, ties to even); 0 where m is not above 1e-30, NaN where something
// is not finite.
void round_inputs(ConstMat x, const LinearWeight& packed, Mat out);
void rope_angles(const BatchView& batch, Mat cos_sin);
void rope(Mat x, int32_t head_dim, ConstMat cos_sin);
void store_kv(const BatchView& batch, ConstMat k, ConstMat v, const KvCacheView& cache);
void attention(const BatchView& batch, const AttentionArgs& args);
void silu_mul(ConstMat gate_up, Mat out);
void add(ConstMat y, Mat x);
void gather_rows(ConstMat x, const int32_t* rows, Mat out);
void sample(const SampleArgs& args);

// One row's distribution after bias, mask, penalties, temperature, min_p, top_k and top_p: the probability
// of each id < vocab_used. `logits` is not changed. Greedy rows have a single 1. All 0: no finite logit.
std::vector<double> distribution(const float* logits, int32_t vocab_used, const SampleRow& row);

}  // namespace whippet::reference
