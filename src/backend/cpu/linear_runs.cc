#include <algorithm>

#include "backend/cpu/kernel_runs.h"

namespace whippet::cpu {
namespace {

constexpr double kEpsilon = 0x1p-24;
constexpr int32_t kOut = 83, kPanels = 6;  // a block of panels and a half, the last of three outputs
constexpr int32_t kMostRows = 15;
constexpr const char* kTypes[3] = {"f32", "f16", "bf16"};

// Values as a type of weights: fp32, fp16, bf16.
std::vector<uint8_t> encode(const Kernels& portable, int type, const std::vector<float>& values) {
  const size_t n = values.size();
  if (type == 0) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());
    return {bytes, bytes + 4 * n};
  }
  std::vector<uint16_t> halves(n);
  (type == 1 ? portable.to_f16 : portable.to_bf16)(values.data(), halves.data(), static_cast<int32_t>(n));
  const auto* bytes = reinterpret_cast<const uint8_t*>(halves.data());
  return {bytes, bytes + 2 * n};
}

void run_dense(const Kernels& kernels, const Kernels& portable, int type, bool exact, Outcomes& outcomes) {
  const int32_t columns = 2 * kLinearChunk + 7;
  Sequence random;
  const std::vector<uint8_t> codes = encode(portable, type, random.values(kPanels * columns * 16, exact));
  const std::vector<float> x = random.values(kMostRows * columns, exact), bias = random.values(kOut, exact);
  std::vector<float> y(kMostRows * kOut), scratch(kLinearScratch);
  LinearTask task{.codes = codes.data(),
                  .bias = bias.data(),
                  .out = kOut,
                  .columns = columns,
                  .panel_begin = 0,
                  .panel_end = kPanels,
                  .x = x.data(),
                  .x_stride = columns,
                  .y = y.data(),
                  .y_stride = kOut,
                  .rows = 0};
  // Two sums of `columns` products, each within that many roundings of their magnitudes' sum.
  const double bound = exact ? 0 : 2.0 * columns * kEpsilon * columns;
  for (task.rows = 1; task.rows <= kMostRows; ++task.rows) {
    for (const bool few : {true, false}) {
      outcomes.begin(std::string(few ? "linear_few " : "linear_many ") + kTypes[type] +
                         (exact ? " exact " : " ") + std::to_string(task.rows),
                     bound);
      std::fill(y.begin(), y.end(), -1.0f);
      if (few && task.rows <= kernels.few_rows)
        kernels.linear_few[type](task);
      else
        kernels.linear_many[type](task, scratch.data());
      outcomes.add(y.data(), static_cast<int64_t>(y.size()));
    }
  }
}

// One column of every half that there is.
void run_widening(const Kernels& kernels, int type, Outcomes& outcomes) {
  std::vector<uint16_t> codes(65536);
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint16_t>(i);
  std::vector<float> y(codes.size());
  const float one = 1;
  const LinearTask task{.codes = codes.data(),
                        .bias = nullptr,
                        .out = 65536,
                        .columns = 1,
                        .panel_begin = 0,
                        .panel_end = 4096,
                        .x = &one,
                        .x_stride = 1,
                        .y = y.data(),
                        .y_stride = 65536,
                        .rows = 1};
  outcomes.begin(std::string("every ") + kTypes[type], 0);
  kernels.linear_few[type](task);
  outcomes.add(y.data(), static_cast<int64_t>(y.size()));
}

struct CodedCase {
  const char* name;
  int32_t groups, group_columns, most_input;
  bool exact, half_scale, half_min, with_min;
};
// Sums of one group are exact for any input; sums over groups where the factors are powers of two.
constexpr CodedCase kCodedCases[] = {
    {"largest inputs", 1, kMaxGroup, 32767, true, false, false, false},
    {"half scales", 3, 40, 60, true, true, false, false},
    {"half minima", 3, 32, 60, true, true, true, true},
    {"fp32 minima", 37, 24, 30, true, false, false, true},
    {"any factors", 5, 64, 32767, false, true, true, true},
};

// A factor as it is stored.
std::vector<uint8_t> factors(const Kernels& portable, bool half, bool exact, Sequence& random, int64_t n) {
  std::vector<float> values(static_cast<size_t>(n));
  for (float& each : values)
    each = exact ? std::ldexp(1.0f, -random.integer(2, 4)) : random.value(false) * 0x1p-7f;
  return encode(portable, half ? 1 : 0, values);
}

// The rows of inputs, q and what their groups came to.
void make_inputs(const CodedCase& each, int32_t code_offset, Sequence& random, std::vector<int16_t>& q,
                 std::vector<InputGroup>& inputs) {
  for (int32_t g = 0; g < kMostRows * each.groups; ++g) {
    int32_t sum = 0;
    for (int32_t c = 0; c < each.group_columns; ++c) {
      q.push_back(static_cast<int16_t>(random.integer(-each.most_input, each.most_input)));
      if (each.most_input == 32767 && g % 3 == 0) q.back() = g % 2 == 0 ? 32767 : -32767;
      sum += q.back();
    }
    const float scale = each.exact ? 0.5f : 0x1p-15f * static_cast<float>(random.integer(1, 9));
    inputs.push_back({scale, scale * static_cast<float>(sum), -code_offset * sum});
  }
}

void run_coded(const Kernels& kernels, const Kernels& portable, int bits, const CodedCase& each,
               Outcomes& outcomes) {
  Sequence random;
  const int64_t group_bytes = int64_t{each.group_columns} * 2 * bits,
                factor_count = kPanels * each.groups * 16;
  std::vector<uint8_t> codes(static_cast<size_t>(kPanels * each.groups * group_bytes));
  for (uint8_t& byte : codes) byte = static_cast<uint8_t>(random.integer(0, 255));
  if (each.most_input == 32767) std::fill(codes.begin(), codes.begin() + group_bytes, uint8_t{255});
  const std::vector<uint8_t> scale = factors(portable, each.half_scale, each.exact, random, factor_count);
  const std::vector<uint8_t> min = factors(portable, each.half_min, each.exact, random, factor_count);
  const std::vector<float> bias = random.values(kOut, true);
  std::vector<int16_t> q;
  std::vector<InputGroup> inputs;
  make_inputs(each, bits == 8 ? 128 : 8, random, q, inputs);
  std::vector<float> y(kMostRows * kOut);
  CodedTask task{.codes = codes.data(),
                 .scale = scale.data(),
                 .min = each.with_min ? min.data() : nullptr,
                 .half_scale = each.half_scale,
                 .half_min = each.half_min,
                 .bias = each.groups > 1 ? bias.data() : nullptr,
                 .out = kOut,
                 .groups = each.groups,
                 .group_columns = each.group_columns,
                 .panel_begin = 0,
                 .panel_end = kPanels,
                 .x = q.data(),
                 .inputs = inputs.data(),
                 .y = y.data(),
                 .y_stride = kOut,
                 .rows = 0};
  // An input is at most 9, a value 128, a factor 2^-7: magnitudes of a group, and of its minimum, sum up to 9
  // and 1/14 for each column. Two sums of two terms a group, with two roundings each.
  const double magnitudes = 9.1 * each.groups * each.group_columns;
  const double bound = each.exact ? 0 : 2.0 * 4 * each.groups * kEpsilon * magnitudes;
  for (task.rows = 1; task.rows <= kMostRows; ++task.rows) {
    outcomes.begin(
        "linear_coded int" + std::to_string(bits) + " " + each.name + " " + std::to_string(task.rows), bound);
    std::fill(y.begin(), y.end(), -1.0f);
    kernels.dots.linear_coded[bits == 8 ? 0 : 1](task);
    outcomes.add(y.data(), static_cast<int64_t>(y.size()));
  }
}

// The integers that inputs are rounded to are the same everywhere.
void run_rounding(const Kernels& kernels, Outcomes& outcomes) {
  const GroupShape shape{.columns = 333, .group = 36, .group_columns = 40, .code_offset = 8, .groups = 10};
  Sequence random;
  std::vector<float> x = random.values(shape.columns, false);
  for (int32_t c = 0; c < shape.columns; ++c) x[c] = std::ldexp(x[c], c % 36 / 3 - 6);
  std::fill_n(x.begin() + 36, 36, 0.0f);
  std::fill_n(x.begin() + 72, 36, 1e-31f);
  x[110] = INFINITY;
  x[150] = NAN;
  for (int32_t c = 180; c < 216; ++c) x[c] = static_cast<float>(c - 180) / 2;  // ties
  x[215] = 16383.5f;
  std::vector<int16_t> q(shape.groups * shape.group_columns);
  std::vector<InputGroup> groups(shape.groups);
  outcomes.begin("round_inputs", 0);
  kernels.dots.round_inputs(x.data(), shape, q.data(), groups.data());
  outcomes.add(q.data(), static_cast<int64_t>(q.size()));
  for (const InputGroup& each : groups) {
    outcomes.add(each.scale);
    outcomes.add(each.sum);
    outcomes.add(each.start);
  }
}

}  // namespace

void run_linear_kernels(const Kernels& kernels, const Kernels& portable, Outcomes& outcomes) {
  for (int type = 0; type < 3; ++type)
    for (const bool exact : {true, false}) run_dense(kernels, portable, type, exact, outcomes);
  run_widening(kernels, 1, outcomes);
  run_widening(kernels, 2, outcomes);
  for (const int bits : {8, 4})
    for (const CodedCase& each : kCodedCases) run_coded(kernels, portable, bits, each, outcomes);
  run_rounding(kernels, outcomes);
}

}  // namespace whippet::cpu
