#include "model/code_grid.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "backend/cpu/cores.h"
#include "backend/packing.h"

namespace whippet {
namespace {

constexpr int kShrinks = 8;  // ranges that are tried, from the whole one down to 65 %
constexpr float kShrink = 0.05f;
constexpr size_t kValuesOfAThread = size_t{1} << 18;

// kI8 holds codes less the middle, which is also a symmetric grid's zero point.
int32_t code_offset(const CodeGrid& grid) { return grid.bits <= 4 ? 0 : 1 << (grid.bits - 1); }

// Rounds to the nearest whole number where |value| < 2^22, in a form that compilers vectorise.
float round_whole(float value) {
  constexpr float magic = 12582912.0f;  // 1.5 * 2^23
  return (value + magic) - magic;
}

// In eight sums side by side, which compilers make vectors of.
float squared_error(std::span<const float> values, const GroupFit& fit, float top) {
  constexpr size_t kLanes = 8;
  const float inverse = 1 / fit.scale, scale = fit.scale, zero = static_cast<float>(fit.zero);
  const auto error_of = [&](float value) {
    const float code = std::min(std::max(round_whole(value * inverse) + zero, 0.0f), top);
    const float error = (code - zero) * scale - value;
    return error * error;
  };
  float sums[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    const float* eight = values.data() + i;
    for (size_t lane = 0; lane < kLanes; ++lane) sums[lane] += error_of(eight[lane]);
  }
  for (; i < values.size(); ++i) sums[i % kLanes] += error_of(values[i]);
  float sum = 0;
  for (const float part : sums) sum += part;
  return sum;
}

// A scale whose inverse is finite, so that codes are.
float usable(float scale) { return scale < 1e-30f ? 0 : scale; }

GroupFit fit_range(float low, float high, const CodeGrid& grid, float share) {
  const int32_t top = (1 << grid.bits) - 1;
  GroupFit fit;
  if (grid.symmetric) {
    fit.zero = (top + 1) / 2;
    fit.scale = usable(2 * share * std::max(high, -low) / static_cast<float>(top));
    return fit;
  }
  fit.scale = usable(share * (high - low) / static_cast<float>(top));
  if (fit.scale == 0) return fit;
  fit.zero =
      static_cast<int32_t>(std::clamp(std::round(-share * low / fit.scale), 0.0f, static_cast<float>(top)));
  return fit;
}

}  // namespace

GroupFit fit_group(std::span<const float> values, const CodeGrid& grid) {
  float low = 0, high = 0;  // the grid always holds 0
  for (const float value : values) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  GroupFit best = fit_range(low, high, grid, 1);
  if (grid.bits >= 8 || best.scale == 0) return best;
  const auto top = static_cast<float>((1 << grid.bits) - 1);
  float least = squared_error(values, best, top);
  for (int i = 1; i < kShrinks; ++i) {
    const GroupFit fit = fit_range(low, high, grid, 1 - kShrink * static_cast<float>(i));
    if (fit.scale == 0) break;
    const float error = squared_error(values, fit, top);
    if (error < least) {
      least = error;
      best = fit;
    }
  }
  return best;
}

int32_t nearest_code(float value, const GroupFit& fit, int32_t bits) {
  if (fit.scale == 0) return fit.zero;
  const int32_t top = (1 << bits) - 1;
  const float steps = std::clamp(value / fit.scale, -512.0f, 512.0f);
  return std::clamp(static_cast<int32_t>(round_whole(steps)) + fit.zero, 0, top);
}

namespace {

// Rows [begin, end) of `coded`, whose arrays have their sizes.
Status round_rows(const CanonicalLinear& dense, const CodeGrid& grid, size_t begin, size_t end,
                  CanonicalLinear& coded) {
  const auto in = static_cast<size_t>(dense.in), groups = static_cast<size_t>(coded.num_groups());
  const int32_t offset = code_offset(grid);
  std::vector<float> row(in);
  std::byte* code = coded.storage.as<std::byte>() + begin * in;
  size_t at = begin * groups;  // of scale and min
  for (size_t o = begin; o < end; ++o) {
    for (size_t i = 0; i < in; ++i) {
      row[i] = code_value(dense, o * in + i);
      if (!std::isfinite(row[i]))
        return make_error(Code::kCorrupt, "the weight at [{}, {}] is {}, which cannot be rounded", o, i,
                          row[i]);
    }
    for (size_t first = 0; first < in; first += static_cast<size_t>(coded.group), ++at) {
      const auto values =
          std::span(row).subspan(first, std::min(static_cast<size_t>(coded.group), in - first));
      const GroupFit fit = fit_group(values, grid);
      coded.scale[at] = fit.scale;
      if (!coded.min.empty()) coded.min[at] = fit.scale * static_cast<float>(offset - fit.zero);
      for (const float value : values)
        *code++ = static_cast<std::byte>(nearest_code(value, fit, grid.bits) - offset);
    }
  }
  return {};
}

}  // namespace

Result<CanonicalLinear> round_to_nearest(const CanonicalLinear& dense, const CodeGrid& grid) {
  WH_CHECK(dense.dense() && grid.bits >= 2 && grid.bits <= 8 && grid.group >= 0, "{} bits in groups of {}",
           grid.bits, grid.group);
  const auto in = static_cast<size_t>(dense.in);
  CanonicalLinear coded;
  coded.codes_type = grid.bits <= 4 ? CanonicalLinear::Codes::kU4 : CanonicalLinear::Codes::kI8;
  coded.out = dense.out;
  coded.in = dense.in;
  coded.group = grid.group == 0 ? dense.in : std::min(grid.group, dense.in);
  coded.bias = dense.bias;
  const auto groups = static_cast<size_t>(coded.num_groups());
  const size_t elements = static_cast<size_t>(dense.out) * in;
  coded.storage = Buffer::host(elements);
  coded.codes = {coded.storage.as<std::byte>(), elements};
  coded.scale.resize(static_cast<size_t>(dense.out) * groups);
  if (code_offset(grid) == 0 || !grid.symmetric) coded.min.resize(coded.scale.size());

  const auto rows = static_cast<size_t>(dense.out);
  const size_t parts =
      std::clamp<size_t>(rows * in / kValuesOfAThread, 1, static_cast<size_t>(cpu::usable_cores()));
  std::vector<Status> ends(parts);
  {
    std::vector<std::jthread> threads;
    const auto round_part = [&](size_t part) {
      ends[part] = round_rows(dense, grid, rows * part / parts, rows * (part + 1) / parts, coded);
    };
    for (size_t part = 1; part < parts; ++part) threads.emplace_back(round_part, part);
    round_part(0);
  }
  for (Status& end : ends) WH_TRY(std::move(end));
  return coded;
}

}  // namespace whippet
