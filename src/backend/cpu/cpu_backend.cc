#include "backend/cpu/cpu_backend.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "backend/cpu/isa.h"
#include "backend/cpu/pack.h"
#include "backend/reference.h"

namespace whippet::cpu {
namespace {

// Column c of output row o, dequantised.
float packed_weight(const LinearWeight& w, int32_t o, int32_t c) {
  const int64_t panel = o / kPanelRows, lane = o % kPanelRows;
  const int64_t at = (panel * w.columns + c) * kPanelRows + lane;
  switch (w.kind) {
    case LinearKind::kF32:
      return static_cast<const float*>(w.codes)[at];
    case LinearKind::kF16:
      return f16_to_f32(static_cast<const uint16_t*>(w.codes)[at]);
    case LinearKind::kBF16:
      return bf16_to_f32(static_cast<const uint16_t*>(w.codes)[at]);
    case LinearKind::kInt8:
    case LinearKind::kInt4:
      break;
  }
  const int64_t group = panel * num_groups(w) + c / w.group;
  const float scale = w.scale[group * kPanelRows + lane];
  const float min = w.min != nullptr ? w.min[group * kPanelRows + lane] : 0.0f;
  if (w.kind == LinearKind::kInt8)
    return std::fma(static_cast<float>(static_cast<const int8_t*>(w.codes)[at]), scale, min);
  const int32_t in_group = c % w.group;
  const uint32_t dword =
      static_cast<const uint32_t*>(w.codes)[(group * ((w.group + 7) / 8) + in_group / 8) * kPanelRows + lane];
  return std::fma(static_cast<float>(dword >> (4 * (in_group % 8)) & 15), scale, min);
}

class CpuBackend : public Backend {
 public:
  explicit CpuBackend(const Kernels& kernels) : kernels_(kernels) {}

  std::string description() const override { return fmt::format("cpu ({}, 1 thread)", kernels_.name); }
  DType activation_type() const override { return DType::kF32; }

  Buffer allocate(size_t bytes) override { return Buffer::host(bytes); }
  void copy_to_device(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }
  void copy_to_host(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }

  Result<LinearWeight> pack(const CanonicalLinear& weight, ComputeType compute) override {
    return pack_linear(weight, compute);
  }

  void embed(const int32_t* ids, const LinearWeight& table, Mat out) override {
    for (int32_t r = 0; r < out.rows; ++r) {
      for (int32_t c = 0; c < table.columns; ++c) {
        const int32_t i = table.order != nullptr ? table.order[c] : c;
        if (i >= 0) out.row<float>(r)[i] = packed_weight(table, ids[r], c);
      }
    }
  }

  void linear(ConstMat x, const LinearWeight& w, Mat out) override {
    for (int32_t o = 0; o < w.out; ++o) {
      for (int32_t r = 0; r < x.rows; ++r) out.row<float>(r)[o] = w.bias != nullptr ? w.bias[o] : 0.0f;
      for (int32_t c = 0; c < w.columns; ++c) {
        const int32_t i = w.order != nullptr ? w.order[c] : c;
        if (i < 0) continue;
        const float weight = packed_weight(w, o, c);
        for (int32_t r = 0; r < x.rows; ++r) out.row<float>(r)[o] += x.row<float>(r)[i] * weight;
      }
    }
  }

  void rms_norm(ConstMat x, const float* weight, int32_t dim, float eps, Mat out) override {
    reference::rms_norm(x, weight, dim, eps, out);
  }
  void rope_angles(const BatchView& batch, Mat cos_sin) override { reference::rope_angles(batch, cos_sin); }
  void rope(Mat x, int32_t head_dim, ConstMat cos_sin) override { reference::rope(x, head_dim, cos_sin); }
  void store_kv(const BatchView& batch, ConstMat k, ConstMat v, const KvCacheView& cache) override {
    reference::store_kv(batch, k, v, cache);
  }
  void attention(const BatchView& batch, const AttentionArgs& args) override {
    reference::attention(batch, args);
  }
  void silu_mul(ConstMat gate_up, Mat out) override { reference::silu_mul(gate_up, out); }
  void add(ConstMat y, Mat x) override { reference::add(y, x); }
  void gather_rows(ConstMat x, const int32_t* rows, Mat out) override {
    reference::gather_rows(x, rows, out);
  }
  void sample(const SampleArgs& args) override { reference::sample(args); }

 private:
  const Kernels& kernels_;
};

}  // namespace

Result<std::unique_ptr<Backend>> make_cpu_backend(int32_t, const std::string& isa) {
  const Kernels* kernels = find_kernels(isa);
  if (kernels == nullptr) return make_error(Code::kInvalidArgument, "no instruction set '{}'", isa);
  return std::unique_ptr<Backend>(std::make_unique<CpuBackend>(*kernels));
}

}  // namespace whippet::cpu
