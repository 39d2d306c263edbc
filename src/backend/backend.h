// The seam: what a device can do. One of the two abstract classes of the tree. Everything above speaks only
// to this page; everything fast lives below it. Ops are called from one thread (the engine's), read and write
// device memory, run in order, and never allocate. Shapes that do not fit are bugs (WH_CHECK), not errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "backend/linear_weight.h"
#include "backend/views.h"
#include "base/error.h"
#include "tensor/buffer.h"
#include "tensor/mat.h"

namespace whippet {

struct DeviceMemory {
  uint64_t total = 0;      // bytes
  uint64_t available = 0;  // that nobody uses now
};

class Backend {
 public:
  virtual ~Backend() = default;

  // "cpu (avx512, 2 threads)": for logs and --version.
  virtual std::string description() const = 0;
  // Its own memory; none where that is the host's.
  virtual std::optional<DeviceMemory> memory() const { return std::nullopt; }
  // What activations are kept in between ops.
  virtual DType activation_type() const = 0;

  // Zeroed memory on the device. Only before the first step.
  virtual Buffer allocate(size_t bytes) = 0;
  virtual void copy_to_device(void* to, const void* from, size_t bytes) = 0;
  virtual void copy_to_host(void* to, const void* from, size_t bytes) = 0;

  // Lays a weight out for this device's kernels. kUnsupported names what it cannot take.
  virtual Result<LinearWeight> pack(const CanonicalLinear& weight, ComputeType compute) = 0;
  // Names the layout that pack gives weights, anew wherever it changes: what it packed before, kept by its
  // bytes, may be adopted instead of packed. "": only pack makes weights of this device.
  virtual std::string packed_form() const { return ""; }
  // As pack, for a weight of this packed_form in host memory that nobody has checked: kCorrupt says what is
  // wrong with it, and nothing that it says can then be relied upon.
  virtual Status adopt(const LinearWeight& weight) {
    static_cast<void>(weight);
    return make_error(Code::kUnsupported, "this device packs its own weights");
  }

  // Host memory that copies from and to the device are quick with.
  virtual Buffer allocate_host(size_t bytes) { return Buffer::host(bytes); }
  // As copy_to_host, but returns at once: `to` (of allocate_host) is filled when a mark() taken later is
  // done.
  virtual void start_copy_to_host(void* to, const void* from, size_t bytes) { copy_to_host(to, from, bytes); }
  // A point between ops, and a wait for everything before it. Only the last few marks are known.
  virtual uint64_t mark() { return 0; }
  virtual void wait(uint64_t) {}
  // Does what `body` does, which calls ops alone. Where a key other than 0 comes again the device may repeat
  // what it did then without calling body: all that body hands to ops must follow from the key.
  virtual void run_step(uint64_t key, const std::function<void()>& body) {
    static_cast<void>(key);
    body();
  }

  // token_ids[r] = max(drawn[sources[r]], 0) where sources[r] >= 0; others stay. Both [num_tokens].
  virtual void fill_inputs(const BatchView& batch, const int32_t* drawn, int32_t* token_ids) = 0;
  // out[r, :] = table row ids[r].                                ids [out.rows], table [vocab, out.cols]
  virtual void embed(const int32_t* ids, const LinearWeight& table, Mat out) = 0;
  // Each piece of `dim` columns on its own: out = x / sqrt(mean(x^2) + eps) * weight. x, out [n, k * dim],
  // weight [dim] fp32; out may be x. (Zhang and Sennrich 2019)
  virtual void rms_norm(ConstMat x, const float* weight, int32_t dim, float eps, Mat out) = 0;
  // out = x w^T + bias.                                          x [n, in], w [out, in], out [n, out]
  virtual void linear(ConstMat x, const LinearWeight& w, Mat out) = 0;
  // cos_sin[r] = cos of position * inv_freq[i] for i < head_dim / 2, then as many sin.  [num_tokens,
  // head_dim] fp32
  virtual void rope_angles(const BatchView& batch, Mat cos_sin) = 0;
  // Rotates pairs (i, i + head_dim / 2) of each head in place.   x [n, heads * head_dim], cos_sin [n,
  // head_dim]
  virtual void rope(Mat x, int32_t head_dim, ConstMat cos_sin) = 0;
  // Writes the rows' K and V where the block tables say.         k, v [num_tokens, num_kv_heads * head_dim]
  virtual void store_kv(const BatchView& batch, ConstMat k, ConstMat v, const KvCacheView& cache) = 0;
  // Causal softmax(q k^T * scale) v over the paged cache.
  virtual void attention(const BatchView& batch, const AttentionArgs& args) = 0;
  // out = silu(gate) * up.                                       gate_up [n, 2 * cols] (gate first), out [n,
  // cols]
  virtual void silu_mul(ConstMat gate_up, Mat out) = 0;
  // x += y.                                                      [n, cols]
  virtual void add(ConstMat y, Mat x) = 0;
  // out[i, :] = x[rows[i], :].                                   rows [out.rows]
  virtual void gather_rows(ConstMat x, const int32_t* rows, Mat out) = 0;
  // One token a row of logits.
  virtual void sample(const SampleArgs& args) = 0;
};

}  // namespace whippet
