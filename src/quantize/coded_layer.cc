#include "quantize/coded_layer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "quantize/tasks.h"
#include "tensor/dtype.h"

namespace whippet {
namespace {

constexpr int32_t kRowsOfTask = 16;

// Codes of `bits` bits one after another, lowest bits first, in 32-bit words.
class WordStream {
 public:
  // stride: words between one word of the stream and the next.
  WordStream(uint32_t* words, size_t stride, int32_t bits) : words_(words), stride_(stride), bits_(bits) {}

  void put(uint32_t code) {
    word_ |= static_cast<uint64_t>(code) << filled_;
    filled_ += bits_;
    if (filled_ < 32) return;
    *words_ = static_cast<uint32_t>(word_);
    words_ += stride_;
    word_ >>= 32;
    filled_ -= 32;
  }

 private:
  uint32_t* words_;
  size_t stride_;
  int32_t bits_;
  uint64_t word_ = 0;
  int32_t filled_ = 0;
};

template <class T>
OwnedTensor make_tensor(std::string name, StorageType type, std::vector<int64_t> shape,
                        const std::vector<T>& values) {
  OwnedTensor tensor;
  tensor.bytes.resize(values.size() * sizeof(T));
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  tensor.view = {std::move(name), type, storage_type_name(type), std::move(shape), tensor.bytes};
  return tensor;
}

}  // namespace

CodedLayer::CodedLayer(int32_t num_outputs, int32_t num_inputs, const CodeGrid& grid)
    : out(num_outputs),
      in(num_inputs),
      bits(grid.bits),
      group(grid.group == 0 ? num_inputs : std::min(grid.group, num_inputs)) {
  const auto rows = static_cast<size_t>(out);
  codes.resize(rows * static_cast<size_t>(in));
  scale.resize(rows * static_cast<size_t>(groups()));
  zero.resize(scale.size());
  g_idx.resize(static_cast<size_t>(in));
  for (int32_t i = 0; i < in; ++i) g_idx[static_cast<size_t>(i)] = i / group;
}

GroupFit storable_fit(std::span<const float> values, const CodeGrid& grid) {
  GroupFit fit = fit_group(values, grid);
  if (!grid.symmetric && fit.zero == 0) {
    const auto top = static_cast<float>((1 << grid.bits) - 1);
    fit = {fit.scale * top / (top - 1), 1};
  }
  fit.scale = f16_to_f32(f32_to_f16(fit.scale));
  if (!std::isfinite(fit.scale)) fit.scale = 65504;  // the largest fp16
  return fit;
}

CodedLayer round_layer(std::span<const float> weight, int32_t out, int32_t in, const CodeGrid& grid,
                       int32_t num_threads) {
  WH_CHECK_EQ(weight.size(), static_cast<size_t>(out) * static_cast<size_t>(in));
  CodedLayer layer(out, in, grid);
  const auto columns = static_cast<size_t>(in), group = static_cast<size_t>(layer.group);
  const auto groups = static_cast<size_t>(layer.groups());
  const auto round_row = [&](size_t o) {
    for (size_t g = 0; g < groups; ++g) {
      const size_t begin = o * columns + g * group, count = std::min(group, columns - g * group);
      const GroupFit fit = storable_fit(weight.subspan(begin, count), grid);
      layer.scale[o * groups + g] = f32_to_f16(fit.scale);
      layer.zero[o * groups + g] = static_cast<uint8_t>(fit.zero);
      for (size_t i = begin; i < begin + count; ++i)
        layer.codes[i] = static_cast<uint8_t>(nearest_code(weight[i], fit, grid.bits));
    }
  };
  run_tasks((out + kRowsOfTask - 1) / kRowsOfTask, num_threads, [&](int32_t task) {
    const int32_t end = std::min(out, (task + 1) * kRowsOfTask);
    for (int32_t o = task * kRowsOfTask; o < end; ++o) round_row(static_cast<size_t>(o));
  });
  return layer;
}

std::vector<float> decode_layer(const CodedLayer& layer) {
  std::vector<float> values(layer.codes.size());
  const auto columns = static_cast<size_t>(layer.in), groups = static_cast<size_t>(layer.groups());
  for (size_t o = 0; o < static_cast<size_t>(layer.out); ++o) {
    for (size_t i = 0; i < columns; ++i) {
      const size_t at = o * groups + static_cast<size_t>(layer.g_idx[i]);
      values[o * columns + i] =
          f16_to_f32(layer.scale[at]) * static_cast<float>(layer.codes[o * columns + i] - layer.zero[at]);
    }
  }
  return values;
}

Status check_packable(const std::string& name, int32_t out, int32_t in, int32_t bits) {
  if (in * bits % 32 == 0 && out * bits % 32 == 0) return {};
  return make_error(Code::kInvalidArgument,
                    "{} is [{}, {}], and {} bits pack whole words only where both are multiples of {}{}",
                    name, out, in, bits, bits == 3 ? 32 : 32 / bits, bits == 8 ? "" : "; try --bits 8");
}

std::vector<OwnedTensor> pack_layer(const std::string& name, const CodedLayer& layer) {
  const auto out = static_cast<size_t>(layer.out), in = static_cast<size_t>(layer.in);
  const auto groups = static_cast<size_t>(layer.groups()), bits = static_cast<size_t>(layer.bits);
  WH_CHECK(in * bits % 32 == 0 && out * bits % 32 == 0, "{}", name);
  const uint32_t mask = (1u << bits) - 1;
  std::vector<uint32_t> qweight(in * bits / 32 * out);
  for (size_t o = 0; o < out; ++o) {
    WordStream column(qweight.data() + o, out, layer.bits);
    for (size_t i = 0; i < in; ++i) column.put(layer.codes[o * in + i]);
  }
  const size_t zero_words = out * bits / 32;
  std::vector<uint32_t> qzeros(groups * zero_words);
  std::vector<uint16_t> scales(groups * out);
  for (size_t g = 0; g < groups; ++g) {
    WordStream row(qzeros.data() + g * zero_words, 1, layer.bits);
    for (size_t o = 0; o < out; ++o) {
      row.put((layer.zero[o * groups + g] - 1u) & mask);
      scales[g * out + o] = layer.scale[o * groups + g];
    }
  }
  const auto dim = [](size_t size) { return static_cast<int64_t>(size); };
  std::vector<OwnedTensor> tensors;
  tensors.push_back(
      make_tensor(name + ".qweight", StorageType::kI32, {dim(in * bits / 32), dim(out)}, qweight));
  tensors.push_back(make_tensor(name + ".qzeros", StorageType::kI32, {dim(groups), dim(zero_words)}, qzeros));
  tensors.push_back(make_tensor(name + ".scales", StorageType::kF16, {dim(groups), dim(out)}, scales));
  tensors.push_back(make_tensor(name + ".g_idx", StorageType::kI32, {dim(in)}, layer.g_idx));
  return tensors;
}

}  // namespace whippet
