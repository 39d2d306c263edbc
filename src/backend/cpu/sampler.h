// Sampling of one row on the CPU: bias, mask and penalties in place, then the choice of a token, exact and in
// time linear in the vocabulary (the tokens that top_k or top_p keep are sorted, the others never).
#pragma once

#include "backend/cpu/kernels.h"
#include "backend/cpu/worker_scratch.h"
#include "backend/views.h"

namespace whippet::cpu {

void sample_row(const Kernels& kernels, const SampleArgs& args, int32_t r, WorkerScratch& scratch);

}  // namespace whippet::cpu
