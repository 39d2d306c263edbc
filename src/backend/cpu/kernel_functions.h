// What the kernel files of one instruction set define; kernel_table.cc puts them into its table. Included
// only by files that are compiled once per set (WHIPPET_ISA is its name).
#pragma once

#include "backend/cpu/kernels.h"

namespace whippet::cpu::WHIPPET_ISA {

void linear_few_f32(const LinearTask& task);
void linear_few_f16(const LinearTask& task);
void linear_few_bf16(const LinearTask& task);
void linear_many_f32(const LinearTask& task, float* scratch);
void linear_many_f16(const LinearTask& task, float* scratch);
void linear_many_bf16(const LinearTask& task, float* scratch);
void linear_coded_int8(const CodedTask& task);
void linear_coded_int4(const CodedTask& task);
void round_inputs(const float* x, const GroupShape& shape, int16_t* q, InputGroup* groups);
void linear_pairs(const PairTask& task);

void rms_norm(const float* x, const float* weight, int32_t dim, float eps, float* out);
void rope(float* head, const float* cos_sin, int32_t head_dim);
void silu_mul(const float* gate, const float* up, float* out, int32_t n);
void add(const float* y, float* x, int32_t n);
void to_f16(const float* from, uint16_t* to, int32_t n);
void to_bf16(const float* from, uint16_t* to, int32_t n);
void to_i8(const float* from, int8_t* to, float* scale, int32_t n);
void exp(const float* x, float* out, int32_t n);

void attention_f32(const AttentionTile& tile, int32_t begin, int32_t end, float* state, float* scratch);
void attention_f16(const AttentionTile& tile, int32_t begin, int32_t end, float* state, float* scratch);
void attention_bf16(const AttentionTile& tile, int32_t begin, int32_t end, float* state, float* scratch);
void attention_i8(const AttentionTile& tile, int32_t begin, int32_t end, float* state, float* scratch);
void attention_merge(float* into, const float* from, int32_t num_queries, int32_t head_dim);
void attention_finish(const AttentionTile& tile, const float* state);

float clean_max(float* x, int32_t n);
double softmax_weights(const float* x, int32_t n, float max, float inverse_temperature, float* weights,
                       double* block_sums);
int32_t find_at_least(const float* x, int32_t n, float threshold, int32_t* indices);
int32_t count_greater(const float* x, int32_t n, float threshold);

double fma_burst(int64_t rounds, float* sink);
double dot_burst(int64_t rounds, float* sink);
double pair_burst(int64_t rounds, float* sink);
void read_burst(const float* data, int64_t count, float* sink);

}  // namespace whippet::cpu::WHIPPET_ISA
