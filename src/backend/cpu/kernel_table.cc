#include "backend/cpu/kernel_functions.h"
#include "simd_dot.h"

#define WHIPPET_NAME_OF(isa) #isa
#define WHIPPET_NAME(isa) WHIPPET_NAME_OF(isa)

namespace whippet::cpu::WHIPPET_ISA {

extern const Kernels kKernels;
const Kernels kKernels = {
    .name = WHIPPET_NAME(WHIPPET_ISA),
    .linear_few = {linear_few_f32, linear_few_f16, linear_few_bf16},
    .linear_many = {linear_many_f32, linear_many_f16, linear_many_bf16},
    .few_rows = kFewRows,
    .dots = {.linear_coded = {linear_coded_int8, linear_coded_int4},
             .panels = kDotPanels,
             .few_rows = kDotRows > 1 ? kDotRows - 1 : 1,
             .few_panels = dot_panels(1),
             .round_inputs = round_inputs,
             .burst = dot_burst},
    .linear_pairs = nullptr,
    .pair_panels = 0,
    .rms_norm = rms_norm,
    .rope = rope,
    .silu_mul = silu_mul,
    .add = add,
    .to_f16 = to_f16,
    .to_bf16 = to_bf16,
    .to_i8 = to_i8,
    .exp = exp,
    .attention = {attention_f32, attention_f16, attention_bf16, attention_i8},
    .attention_merge = attention_merge,
    .attention_finish = attention_finish,
    .clean_max = clean_max,
    .softmax_weights = softmax_weights,
    .find_at_least = find_at_least,
    .count_greater = count_greater,
    .fma_burst = fma_burst,
    .pair_burst = nullptr,
    .read_burst = read_burst,
};

}  // namespace whippet::cpu::WHIPPET_ISA
