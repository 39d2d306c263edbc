// Puts pending ops on the queue: each by its own kernel, or a few that follow each other by one.
#include "backend/cuda/cuda_device_backend.h"

namespace whippet::cuda {
namespace {

bool same(ConstMat a, ConstMat b) {
  return a.data == b.data && a.rows == b.rows && a.cols == b.cols && a.stride == b.stride &&
         a.dtype == b.dtype;
}

struct Runner {
  const Queue& queue;
  Linear& linear;
  const AttentionScratch& scratch;

  void operator()(const EmbedOp& op) const { embed(queue, op.ids, view_of(*op.table), op.out); }
  void operator()(const NormOp& op) const { rms_norm(queue, op.x, op.weight, op.dim, op.eps, op.out); }
  void operator()(const LinearOp& op) const { linear.run(queue, op.x, *op.weight, op.out); }
  void operator()(const AnglesOp& op) const { rope_angles(queue, op.batch, op.cos_sin); }
  void operator()(const RopeOp& op) const { rope(queue, op.x, op.head_dim, op.cos_sin); }
  void operator()(const StoreOp& op) const { store_kv(queue, op.batch, op.k, op.v, op.cache); }
  void operator()(const AttentionOp& op) const { attention(queue, op.batch, op.args, scratch); }
  void operator()(const SiluOp& op) const { silu_mul(queue, op.gate_up, op.out); }
  void operator()(const AddOp& op) const { add(queue, op.y, op.x); }
  void operator()(const GatherOp& op) const { gather_rows(queue, op.x, op.rows, op.out); }
};

// The rows of most ops; a batch of none needs no kernel.
template <class T>
bool is_empty(const T& op) {
  if constexpr (requires { op.batch; }) {
    return op.batch.num_tokens == 0;
  } else if constexpr (requires { op.out; }) {
    return op.out.rows == 0;
  } else {
    return op.x.rows == 0;
  }
}

}  // namespace

void CudaBackend::run(const Op& op) {
  if (std::visit([](const auto& each) { return is_empty(each); }, op)) return;
  std::visit(Runner{device_.queue(), linear_, attention_scratch_}, op);
}

size_t CudaBackend::run_fused(size_t first) {
  if (deterministic_) return 0;
  return fuse_linear(first);
}

// [rms_norm,] linear [, add | silu_mul]
size_t CudaBackend::fuse_linear(size_t first) {
  size_t next = first;
  const NormOp* norm = pending<NormOp>(next);
  if (norm != nullptr) ++next;
  const LinearOp* linear = pending<LinearOp>(next);
  if (linear == nullptr || linear->out.rows == 0) return 0;
  ++next;
  const WeightView weight = view_of(*linear->weight);
  ConstMat x = linear->x;
  if (norm != nullptr) {
    // Products of x and the norm's weight are rounded before the sum: fp16 has no room for large ones.
    if (!same(norm->out, x) || norm->dim != x.cols || norm->out.data == norm->x.data ||
        x.dtype != DType::kBF16)
      return 0;
    x = norm->x;
  }
  if (!linear_.uses_tiles(x, *linear->weight)) return 0;
  TileArgs args = tile_args(x, weight, linear->out);
  if (norm != nullptr) {
    args.norm = norm->weight;
    args.eps = norm->eps;
    args.normed = norm->out.data;
    args.normed_stride = norm->out.stride;
  }
  const AddOp* add = pending<AddOp>(next);
  const SiluOp* silu = pending<SiluOp>(next);
  if (add != nullptr && same(add->y, linear->out) && add->x.data != x.data && !args.y_is_float) {
    args.residual = add->x.data;
    args.residual_stride = add->x.stride;
    ++next;
  } else if (silu != nullptr && same(silu->gate_up, linear->out) && silu->out.cols % 8 == 0 &&
             !args.y_is_float) {
    args.pair = silu->out.cols;
    args.gated = silu->out.data;
    args.gated_stride = silu->out.stride;
    ++next;
  }
  if (next == first + 1) return 0;
  linear_tiles(device_.queue(), x.dtype, args);
  return next - first;
}

}  // namespace whippet::cuda
