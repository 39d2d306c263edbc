// Linear layers on the CPU: how weights are packed, shared among workers, and read as an embedding.
#include <algorithm>
#include <cmath>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/for_rows.h"
#include "backend/cpu/pack.h"
#include "backend/cpu/packed_layout.h"
#include "base/math.h"

namespace whippet::cpu {
namespace {

constexpr int32_t kGatheredRows = 64;  // act-order inputs that are gathered at once
constexpr size_t kRoundedRows = 512;   // rows whose rounded inputs are kept at once
constexpr int32_t kRowBlock = 192;     // rows that pass a widened block of panels

LinearTask task_of(ConstMat x, const LinearWeight& w, Mat out) {
  LinearTask task = {};
  task.codes = w.codes;
  task.bias = w.bias;
  task.out = w.out;
  task.columns = w.columns;
  task.x = x.row<float>(0);
  task.x_stride = x.stride;
  task.y = out.row<float>(0);
  task.y_stride = out.stride;
  task.rows = x.rows;
  return task;
}

float factor_at(const void* factors, DType type, int64_t at) {
  return type == DType::kF16 ? f16_to_f32(static_cast<const uint16_t*>(factors)[at])
                             : static_cast<const float*>(factors)[at];
}

float coded_weight(const LinearWeight& w, int32_t o, int32_t c) {
  const int64_t panel = o / kPanelRows, lane = o % kPanelRows;
  const int64_t group = panel * num_groups(w) + c / w.group;
  const int32_t in_group = c % w.group;
  const int64_t first = group * group_columns(w) * kPanelRows;  // column
  const auto* codes = static_cast<const uint8_t*>(w.codes);
  const int32_t code =
      w.kind == LinearKind::kInt8
          ? codes[first + in_group / 4 * 64 + lane * 4 + in_group % 4]
          : codes[first / 2 + in_group / 8 * 64 + lane * 4 + in_group % 4] >> (in_group % 8 < 4 ? 0 : 4) & 15;
  const int64_t at = group * kPanelRows + lane;
  const float min = w.min != nullptr ? factor_at(w.min, w.min_type, at) : 0.0f;
  return std::fma(static_cast<float>(code - w.code_offset), factor_at(w.scale, w.scale_type, at), min);
}

// Column c of output row o, dequantised.
float packed_weight(const LinearWeight& w, int32_t o, int32_t c) {
  const int64_t panel = o / kPanelRows, lane = o % kPanelRows;
  const int64_t at = (panel * w.columns + c) * kPanelRows + lane;
  const auto* bits = static_cast<const uint16_t*>(w.codes);
  switch (w.kind) {
    case LinearKind::kF32:
      return static_cast<const float*>(w.codes)[at];
    case LinearKind::kF16:
      return f16_to_f32(bits[at]);
    case LinearKind::kBF16:
      if (w.input_type == DType::kF32) return bf16_to_f32(bits[at]);
      return bf16_to_f32(bits[(panel * num_pairs(w) + c / 2) * 2 * kPanelRows + 2 * lane + c % 2]);
    case LinearKind::kInt8:
    case LinearKind::kInt4:
      return coded_weight(w, o, c);
  }
  return 0;
}

}  // namespace

Result<LinearWeight> CpuBackend::pack(const CanonicalLinear& weight, ComputeType compute) {
  auto packed = pack_linear(weight, compute, kernels_.linear_pairs != nullptr, pool_);
  if (packed.ok()) make_room(*packed);
  return packed;
}

std::string CpuBackend::packed_form() const {
  return fmt::format("cpu {} layout {}", kernels_.name, kPackedLayout);
}

Status CpuBackend::adopt(const LinearWeight& weight) {
  WH_TRY(check_packed(weight, kernels_.linear_pairs != nullptr));
  make_room(weight);
  return {};
}

// What ops on this weight need, so that they allocate nothing.
void CpuBackend::make_room(const LinearWeight& w) {
  make_room_for_sampling(w.out);
  const size_t row = w.input_type == DType::kBF16 ? sizeof(uint32_t) * num_pairs(w)
                     : w.input_type == DType::kI8 ? sizeof(int16_t) * num_groups(w) * group_columns(w)
                                                  : 0;
  if (kRoundedRows * row > rounded_.bytes()) rounded_ = Buffer::host(kRoundedRows * row);
  const size_t groups = kRoundedRows * num_groups(w) * sizeof(InputGroup);
  if (groups > input_groups_.bytes()) input_groups_ = Buffer::host(groups);
  if (w.order != nullptr && w.columns > gathered_columns_) {
    gathered_columns_ = w.columns;
    gathered_ = Buffer::host(sizeof(float) * kGatheredRows * gathered_columns_);
  }
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
  const auto some_rows = static_cast<int32_t>(kRoundedRows);
  for (int32_t begin = 0; begin < x.rows; begin += some_rows) {
    const int32_t rows = std::min(some_rows, x.rows - begin);
    const ConstMat part{x.row<float>(begin), x.dtype, rows, x.cols, x.stride};
    const Mat result{out.row<float>(begin), out.dtype, rows, out.cols, out.stride};
    if (w.input_type == DType::kI8)
      product_of_codes(part, w, result);
    else if (w.input_type == DType::kBF16)
      product_of_pairs(part, w, result);
    else if (rows <= kernels_.few_rows)
      product_of_few(w, task_of(part, w, result));
    else
      product_of_many(w, task_of(part, w, result));
  }
}

// Calls body(first panel, end panel, first row, end row) for pieces of the product, in parallel: some for
// each worker, so that one whose core is taken away holds up little, each of whole tiles of panels.
template <class Body>
void CpuBackend::for_pieces(const LinearWeight& w, int32_t rows, int32_t tile_panels, const Body& body) {
  const int32_t panels = num_panels(w), threads = pool_.num_threads();
  const int32_t row_blocks = ceil_div(rows, kRowBlock);
  const int32_t rows_per_block = align_up(ceil_div(rows, row_blocks), 12);  // whole tiles of 3, 4 and 6
  const int32_t tiles = ceil_div(panels, tile_panels);
  const int64_t elements = int64_t{panels} * kPanelRows * w.columns * rows;
  const int32_t wanted = elements < 2 * kParallelElements ? 1 : threads * std::clamp(tiles / threads, 1, 12);
  const int32_t runs = std::min(tiles, wanted);
  pool_.run(runs * row_blocks, [&](int32_t index, int32_t) {
    const int32_t run = index % runs, first = index / runs * rows_per_block;
    const auto bound = [&](int32_t r) {
      return std::min(panels, static_cast<int32_t>(int64_t{tiles} * r / runs) * tile_panels);
    };
    if (first < rows) body(bound(run), bound(run + 1), first, std::min(rows, first + rows_per_block));
  });
}

void CpuBackend::product_of_codes(ConstMat x, const LinearWeight& w, Mat out) {
  const GroupShape shape{w.columns, w.group, group_columns(w), w.code_offset, num_groups(w)};
  const int64_t groups = shape.groups, row_columns = groups * shape.group_columns;
  auto* rounded = rounded_.as<int16_t>();
  auto* inputs = input_groups_.as<InputGroup>();
  for_rows(x.rows, w.columns, [&](int32_t begin, int32_t end) {
    for (int64_t r = begin; r < end; ++r)
      kernels_.dots.round_inputs(x.row<float>(static_cast<int32_t>(r)), shape, rounded + r * row_columns,
                                 inputs + r * groups);
  });
  CodedTask whole = {};
  whole.codes = static_cast<const uint8_t*>(w.codes);
  whole.scale = w.scale;
  whole.min = w.min;
  whole.half_scale = w.scale_type == DType::kF16;
  whole.half_min = w.min_type == DType::kF16;
  whole.bias = w.bias;
  whole.out = w.out;
  whole.groups = shape.groups;
  whole.group_columns = shape.group_columns;
  whole.y_stride = out.stride;
  const auto kernel = kernels_.dots.linear_coded[w.kind == LinearKind::kInt8 ? 0 : 1];
  for_pieces(w, x.rows, x.rows <= kernels_.dots.few_rows ? kernels_.dots.few_panels : kernels_.dots.panels,
             [&](int32_t panel_begin, int32_t panel_end, int32_t first, int32_t end) {
               CodedTask task = whole;
               task.panel_begin = panel_begin;
               task.panel_end = panel_end;
               task.x = rounded + first * row_columns;
               task.inputs = inputs + first * groups;
               task.y = out.row<float>(first);
               task.rows = end - first;
               kernel(task);
             });
}

void CpuBackend::product_of_pairs(ConstMat x, const LinearWeight& w, Mat out) {
  const int64_t pairs = num_pairs(w);
  auto* rounded = rounded_.as<uint32_t>();
  for_rows(x.rows, w.columns, [&](int32_t begin, int32_t end) {
    for (int32_t r = begin; r < end; ++r) {
      uint32_t* row = rounded + r * pairs;
      row[pairs - 1] = 0;  // the second half of the last may be no column
      kernels_.to_bf16(x.row<float>(r), reinterpret_cast<uint16_t*>(row), w.columns);
    }
  });
  PairTask whole = {};
  whole.codes = static_cast<const uint32_t*>(w.codes);
  whole.bias = w.bias;
  whole.out = w.out;
  whole.pairs = static_cast<int32_t>(pairs);
  whole.y_stride = out.stride;
  for_pieces(w, x.rows, kernels_.pair_panels,
             [&](int32_t panel_begin, int32_t panel_end, int32_t first, int32_t end) {
               PairTask task = whole;
               task.panel_begin = panel_begin;
               task.panel_end = panel_end;
               task.x = rounded + first * pairs;
               task.y = out.row<float>(first);
               task.rows = end - first;
               kernels_.linear_pairs(task);
             });
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
    task.panel_begin = index % panel_blocks * kLinearBlockPanels;
    task.panel_end = std::min(panels, task.panel_begin + kLinearBlockPanels);
    kernel(task, scratch_[worker].kernel.as<float>());
  });
}

}  // namespace whippet::cpu
