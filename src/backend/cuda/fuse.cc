// Puts pending ops on the queue: each by its own kernel, or a few that follow each other by one.
#include <algorithm>

#include "backend/cuda/cuda_device_backend.h"

namespace whippet::cuda {
namespace {

bool same(ConstMat a, ConstMat b) {
  return a.data == b.data && a.rows == b.rows && a.cols == b.cols && a.stride == b.stride &&
         a.dtype == b.dtype;
}

// What an op reads and writes of matrices; caches and lists are never both.
struct Touched {
  ConstMat read[3];
  Mat written;
};
struct Touches {
  Touched operator()(const FillOp&) const { return {}; }
  Touched operator()(const EmbedOp& op) const { return {{}, op.out}; }
  Touched operator()(const NormOp& op) const { return {{op.x}, op.out}; }
  Touched operator()(const LinearOp& op) const { return {{op.x}, op.out}; }
  Touched operator()(const AnglesOp& op) const { return {{}, op.cos_sin}; }
  Touched operator()(const RopeOp& op) const { return {{op.x, op.cos_sin}, op.x}; }
  Touched operator()(const StoreOp& op) const { return {{op.k, op.v}, {}}; }
  Touched operator()(const AttentionOp& op) const { return {{op.args.q}, op.args.out}; }
  Touched operator()(const SiluOp& op) const { return {{op.gate_up}, op.out}; }
  Touched operator()(const AddOp& op) const { return {{op.y, op.x}, op.x}; }
  Touched operator()(const GatherOp& op) const { return {{op.x}, op.out}; }
};

const char* begin_of(ConstMat m) { return static_cast<const char*>(m.data); }
const char* end_of(ConstMat m) {
  return begin_of(m) + ((m.rows - 1) * m.stride + m.cols) * static_cast<int64_t>(dtype_size(m.dtype));
}
bool overlap(ConstMat a, ConstMat b) {
  if (a.data == nullptr || b.data == nullptr || a.rows == 0 || b.rows == 0) return false;
  return begin_of(a) < end_of(b) && begin_of(b) < end_of(a);
}
// Whether every element of m is one of `whole`.
bool covers(ConstMat whole, ConstMat m) {
  if (whole.data == nullptr || whole.stride != m.stride || whole.rows < m.rows || whole.dtype != m.dtype ||
      begin_of(m) < begin_of(whole))
    return false;
  return (begin_of(m) - begin_of(whole)) / static_cast<int64_t>(dtype_size(m.dtype)) + m.cols <= whole.cols;
}

struct Runner {
  const Queue& queue;
  Linear& linear;
  const AttentionScratch& scratch;

  void operator()(const FillOp& op) const { fill_inputs(queue, op.batch, op.drawn, op.token_ids); }
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
  if (const auto* store = std::get_if<StoreOp>(&op)) changed_caches_.push_back(store->cache.k);
}

// Whether m is written again before anybody reads it, by ops from `from` on.
bool CudaBackend::is_dead(ConstMat m, size_t from) const {
  for (size_t i = from; i < pending_.size(); ++i) {
    const Touched touched = std::visit(Touches{}, pending_[i]);
    for (const ConstMat& read : touched.read)
      if (overlap(read, m)) return false;
    if (covers(touched.written, m)) return true;
  }
  return false;
}

size_t CudaBackend::run_fused(size_t first) {
  if (deterministic_) return 0;
  if (const size_t fused = fuse_attention(first); fused > 0) return fused;
  if (const size_t fused = fuse_add(first); fused > 0) return fused;
  return fuse_linear(first);
}

// add, rms_norm of the sum
size_t CudaBackend::fuse_add(size_t first) {
  const AddOp* add = pending<AddOp>(first);
  const NormOp* norm = pending<NormOp>(first + 1);
  if (add == nullptr || norm == nullptr || add->x.rows == 0) return 0;
  if (!same(add->x, norm->x) || norm->dim != add->x.cols || norm->out.data == add->x.data) return 0;
  // out may be y: a thread has read its part of y before it writes there.
  return add_rms_norm(device_.queue(), add->y, add->x, norm->weight, norm->eps, norm->out) ? 2 : 0;
}

// rope of q, rope of k, store_kv, attention, where each row has a sequence of its own
size_t CudaBackend::fuse_attention(size_t first) {
  const RopeOp* q = pending<RopeOp>(first);
  const RopeOp* k = pending<RopeOp>(first + 1);
  const StoreOp* store = pending<StoreOp>(first + 2);
  const AttentionOp* attention = pending<AttentionOp>(first + 3);
  if (q == nullptr || k == nullptr || store == nullptr || attention == nullptr) return 0;
  const BatchView& batch = attention->batch;
  const KvCacheView& cache = attention->args.cache;
  if (batch.num_tokens == 0 || batch.num_tokens != batch.num_seqs) return 0;
  if (!same(q->x, attention->args.q) || !same(k->x, store->k) || q->head_dim != cache.head_dim ||
      k->head_dim != cache.head_dim || !same(q->cos_sin, k->cos_sin) || store->cache.k != cache.k ||
      store->batch.positions != batch.positions)
    return 0;
  Rotation rotation;
  rotation.cos_sin = static_cast<const float*>(q->cos_sin.data);
  rotation.cos_sin_stride = q->cos_sin.stride;
  rotation.q = q->x.data;
  rotation.k = k->x.data;
  rotation.v = store->v.data;
  rotation.q_stride = q->x.stride;
  rotation.k_stride = k->x.stride;
  rotation.v_stride = store->v.stride;
  rotation.keep = !is_dead(q->x, first + 4) || !is_dead(k->x, first + 4);
  rotation.settled = std::ranges::find(changed_caches_, cache.k) == changed_caches_.end();
  if (!rotate_and_attend(device_.queue(), batch, attention->args, rotation, attention_scratch_)) return 0;
  changed_caches_.push_back(cache.k);
  return 4;
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
  const bool in_codes = weight.kind == LinearKind::kInt8 || weight.kind == LinearKind::kInt4;
  ConstMat x = linear->x;
  if (norm != nullptr) {
    // Products of x and the norm's weight are rounded before the sum: fp16 has no room for large ones.
    if (!same(norm->out, x) || norm->dim != x.cols || norm->out.data == norm->x.data ||
        x.dtype != DType::kBF16 || (!in_codes && !tiles_can_norm(device_.queue(), x, weight.out)))
      return 0;
    x = norm->x;
  }
  if (!linear_.uses_tiles(device_.queue(), x, *linear->weight)) return 0;
  TileArgs args = tile_args(x, weight, linear->out);
  args.may_bulk = true;
  if (norm != nullptr) {
    args.norm = norm->weight;
    args.eps = norm->eps;
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
  if (norm != nullptr && !is_dead(norm->out, next)) {
    if (in_codes) return 0;
    args.normed = norm->out.data;
  }
  if (next > first + (norm != nullptr ? 2 : 1) && is_dead(linear->out, next)) args.y = nullptr;
  linear_tiles(device_.queue(), x.dtype, args);
  return next - first;
}

}  // namespace whippet::cuda
