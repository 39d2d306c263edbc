// Linear layers on the CPU: how weights are packed, shared among workers, and read as an embedding.
#include <algorithm>
#include <cmath>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/for_rows.h"
#include "backend/cpu/pack.h"
#include "base/math.h"

namespace whippet::cpu {
namespace {

constexpr int32_t kGatheredRows = 64;  // act-order inputs that are gathered at once
constexpr int32_t kSummedRows = 1024;  // rows whose sums by group are kept at once
constexpr int32_t kRowBlock = 192;     // rows that pass a widened block of panels

LinearTask task_of(ConstMat x, const LinearWeight& w, Mat out) {
  LinearTask task = {};
  task.codes = w.codes;
  task.scale = w.scale;
  task.min = w.min;
  task.bias = w.bias;
  task.out = w.out;
  task.columns = w.columns;
  task.group = w.group;
  task.x = x.row<float>(0);
  task.x_stride = x.stride;
  task.y = out.row<float>(0);
  task.y_stride = out.stride;
  task.rows = x.rows;
  return task;
}

// Column c of output row o, dequantised as the kernels do.
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
  const int64_t dword = (group * ceil_div(w.group, 8) + in_group / 8) * kPanelRows + lane;
  const uint32_t code = static_cast<const uint32_t*>(w.codes)[dword] >> (4 * (in_group % 8)) & 15;
  return std::fma(static_cast<float>(code), scale, min);
}

}  // namespace

Result<LinearWeight> CpuBackend::pack(const CanonicalLinear& weight, ComputeType compute) {
  auto packed = pack_linear(weight, compute, pool_);
  if (!packed.ok()) return packed;
  make_room_for_sampling(weight.out);
  const size_t sums = packed->min != nullptr ? size_t{kSummedRows} * num_groups(*packed) * sizeof(float) : 0;
  if (sums > group_sums_.bytes()) group_sums_ = Buffer::host(sums);
  const size_t inputs = static_cast<size_t>(kernels_.few_rows) * packed->columns * sizeof(float);
  if (packed->kind == LinearKind::kInt4 && inputs > nibble_inputs_.bytes())
    nibble_inputs_ = Buffer::host(inputs);
  if (packed->order != nullptr && packed->columns > gathered_columns_) {
    gathered_columns_ = packed->columns;
    gathered_ = Buffer::host(sizeof(float) * kGatheredRows * gathered_columns_);
  }
  return packed;
}

void CpuBackend::embed(const int32_t* ids, const LinearWeight& table, Mat out) {
  WH_CHECK(out.dtype == DType::kF32 && out.cols == table.in, "[{}, {}]", out.rows, out.cols);
  for_rows(out.rows, int64_t{16} * out.cols, [&](int32_t begin, int32_t end) {
    for (int32_t r = begin; r < end; ++r) {
      WH_CHECK(ids[r] >= 0 && ids[r] < table.out, "id {} of {}", ids[r], table.out);
      for (int32_t c = 0; c < table.columns; ++c) {
        const int32_t i = table.order != nullptr ? table.order[c] : c;
        if (i >= 0) out.row<float>(r)[i] = packed_weight(table, ids[r], c);
      }
    }
  });
}

void CpuBackend::linear(ConstMat x, const LinearWeight& w, Mat out) {
  WH_CHECK(x.dtype == DType::kF32 && out.dtype == DType::kF32);
  WH_CHECK(x.cols == w.in && out.cols == w.out && x.rows == out.rows, "[{}, {}] times [{}, {}] into [{}, {}]",
           x.rows, x.cols, w.out, w.in, out.rows, out.cols);
  if (w.order == nullptr) return product(x, w, out);
  for (int32_t begin = 0; begin < x.rows; begin += kGatheredRows) {
    const int32_t count = std::min(kGatheredRows, x.rows - begin);
    const Mat gathered = gathered_.mat(DType::kF32, count, w.columns);
    for_rows(count, int64_t{4} * w.columns, [&](int32_t first, int32_t end) {
      for (int32_t r = first; r < end; ++r) {
        const float* from = x.row<float>(begin + r);
        for (int32_t c = 0; c < w.columns; ++c)
          gathered.row<float>(r)[c] = w.order[c] >= 0 ? from[w.order[c]] : 0.0f;
      }
    });
    product(gathered, w, {out.row<float>(begin), DType::kF32, count, out.cols, out.stride});
  }
}

void CpuBackend::product(ConstMat x, const LinearWeight& w, Mat out) {
  for (int32_t begin = 0; begin < x.rows; begin += kSummedRows) {
    LinearTask task = task_of(x, w, out);
    task.x += begin * x.stride;
    task.y += begin * out.stride;
    task.rows = std::min(kSummedRows, x.rows - begin);
    prepare_inputs(w, task);
    if (task.rows <= kernels_.few_rows)
      product_of_few(w, task);
    else
      product_of_many(w, task);
  }
}

// What the kernels want to know about the inputs of quantised weights.
void CpuBackend::prepare_inputs(const LinearWeight& w, LinearTask& task) {
  if (w.min != nullptr) {
    const int32_t groups = num_groups(w);
    auto* sums = group_sums_.as<float>();
    for_rows(task.rows, w.columns, [&](int32_t begin, int32_t end) {
      for (int32_t r = begin; r < end; ++r)
        kernels_.group_sums(task.x + r * task.x_stride, w.columns, w.group, sums + int64_t{r} * groups);
    });
    task.x_sums = sums;
  }
  if (w.kind == LinearKind::kInt4 && task.rows <= kernels_.few_rows) {
    auto* inputs = nibble_inputs_.as<float>();
    for (int32_t r = 0; r < task.rows; ++r)
      kernels_.nibble_inputs(task.x + r * task.x_stride, w.columns, w.group, inputs + int64_t{r} * w.columns);
    task.x = inputs;
    task.x_stride = w.columns;
  }
}

// A few runs of panels a worker, so that one whose core is taken away holds up little.
void CpuBackend::product_of_few(const LinearWeight& w, const LinearTask& whole) {
  const int32_t panels = num_panels(w), threads = pool_.num_threads();
  const bool small = int64_t{panels} * kPanelRows * w.columns < 2 * kParallelElements;
  const int32_t runs = small ? 1 : std::min(panels, threads * std::clamp(panels / (threads * 16), 1, 8));
  const auto kernel = kernels_.linear_few[static_cast<int>(w.kind)];
  pool_.run(runs, [&](int32_t run, int32_t) {
    LinearTask task = whole;
    task.panel_begin = static_cast<int32_t>(int64_t{panels} * run / runs);
    task.panel_end = static_cast<int32_t>(int64_t{panels} * (run + 1) / runs);
    kernel(task);
  });
}

// Blocks of panels times blocks of rows.
void CpuBackend::product_of_many(const LinearWeight& w, const LinearTask& whole) {
  const int32_t panels = num_panels(w);
  const int32_t panel_blocks = ceil_div(panels, kLinearBlockPanels);
  const int32_t row_blocks = ceil_div(whole.rows, kRowBlock);
  const int32_t rows_per_block = align_up(ceil_div(whole.rows, row_blocks), 6);
  const auto kernel = kernels_.linear_many[static_cast<int>(w.kind)];
  pool_.run(panel_blocks * row_blocks, [&](int32_t index, int32_t worker) {
    LinearTask task = whole;
    const int32_t first = index / panel_blocks * rows_per_block;
    task.rows = std::min(rows_per_block, whole.rows - first);
    if (task.rows <= 0) return;
    task.x += first * whole.x_stride;
    task.y += first * whole.y_stride;
    if (task.x_sums != nullptr) task.x_sums += int64_t{first} * num_groups(w);
    task.panel_begin = index % panel_blocks * kLinearBlockPanels;
    task.panel_end = std::min(panels, task.panel_begin + kLinearBlockPanels);
    kernel(task, scratch_[worker].kernel.as<float>());
  });
}

}  // namespace whippet::cpu
