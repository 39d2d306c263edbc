// The quantised formats of safetensors files, against what tools/make_quantized_goldens.py packed into them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <random>

#include "backend/packing.h"
#include "model/checkpoint_testing.h"
#include "model/formats/format.h"
#include "model/safetensors.h"

namespace whippet {
namespace {

using Codes = CanonicalLinear::Codes;
using testing::HasSubstr;

CanonicalLinear decode(const Checkpoint& checkpoint, const std::string& layer,
                       std::vector<int32_t> rows = {}) {
  const Result<const Format*> format = find_format(checkpoint, layer);
  if (!format.ok()) {
    ADD_FAILURE() << format.error().message;
    return {};
  }
  const Result<LinearLayout> layout = (*format)->layout(checkpoint, layer);
  if (!layout.ok()) {
    ADD_FAILURE() << layout.error().message;
    return {};
  }
  if (rows.empty()) {
    rows.resize(static_cast<size_t>(layout->out));
    std::iota(rows.begin(), rows.end(), 0);
  }
  CanonicalLinear weight;
  weight.codes_type = layout->codes;
  weight.out = static_cast<int32_t>(rows.size());
  weight.in = layout->in;
  weight.group = layout->group;
  weight.g_idx = layout->g_idx;
  const size_t bytes = rows.size() * static_cast<size_t>(layout->in) * code_bytes(layout->codes);
  const size_t groups = rows.size() * static_cast<size_t>(weight.num_groups());
  weight.storage = Buffer::host(bytes);
  std::memset(weight.storage.as<std::byte>(), 0xAB, bytes);
  weight.codes = {weight.storage.as<std::byte>(), bytes};
  weight.scale.assign(groups, -1e30f);
  if (layout->has_min) weight.min.assign(groups, -1e30f);
  (*format)->decode(checkpoint, layer, rows,
                    {weight.storage.as<std::byte>(), weight.scale.data(),
                     weight.min.empty() ? nullptr : weight.min.data()});
  return weight;
}

Checkpoint open(const std::string& name) {
  Result<Checkpoint> checkpoint = open_checkpoint(test_data("quantized/" + name));
  if (!checkpoint.ok()) {
    ADD_FAILURE() << checkpoint.error().message;
    return {};
  }
  return std::move(*checkpoint);
}

// expected.safetensors as a checkpoint: LAYER.weight in fp32.
std::map<std::string, std::vector<float>> expected_of(const std::string& name) {
  const Result<MappedFile> file = MappedFile::open(test_data("quantized/" + name) / "expected.safetensors");
  std::map<std::string, std::vector<float>> values;
  if (!file.ok()) {
    ADD_FAILURE() << file.error().message;
    return values;
  }
  const Result<std::vector<TensorView>> tensors = parse_safetensors(file->bytes(), "expected");
  for (const TensorView& tensor : *tensors) {
    std::vector<float>& to = values[tensor.name.substr(0, tensor.name.rfind('.'))];
    to.resize(tensor.data.size() / sizeof(float));
    std::memcpy(to.data(), tensor.data.data(), tensor.data.size());
  }
  return values;
}

class Quantized : public testing::TestWithParam<const char*> {};

TEST_P(Quantized, EveryLayerDecodesExactly) {
  const Checkpoint checkpoint = open(GetParam());
  const auto expected = expected_of(GetParam());
  ASSERT_FALSE(expected.empty());
  for (const auto& [layer, values] : expected) {
    const CanonicalLinear weight = decode(checkpoint, layer);
    ASSERT_EQ(static_cast<size_t>(weight.out) * static_cast<size_t>(weight.in), values.size()) << layer;
    for (int32_t o = 0; o < weight.out; ++o) {
      for (int32_t i = 0; i < weight.in; ++i) {
        ASSERT_EQ(weight_value(weight, o, i), values[static_cast<size_t>(o) * weight.in + i])
            << layer << " [" << o << ", " << i << "]";
      }
    }
  }
}

TEST_P(Quantized, RowsComeInTheOrderThatIsAsked) {
  const Checkpoint checkpoint = open(GetParam());
  std::mt19937 random(7);
  for (const auto& [layer, values] : expected_of(GetParam())) {
    const CanonicalLinear whole = decode(checkpoint, layer);
    std::vector<int32_t> rows(5);
    for (int32_t& row : rows) row = static_cast<int32_t>(random() % static_cast<uint32_t>(whole.out));
    const CanonicalLinear some = decode(checkpoint, layer, rows);
    for (int32_t o = 0; o < some.out; ++o) {
      for (int32_t i = 0; i < some.in; ++i)
        ASSERT_EQ(weight_value(some, o, i), weight_value(whole, rows[static_cast<size_t>(o)], i)) << layer;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, Quantized,
                         testing::Values("gptq", "gptq_v2", "awq", "bitsandbytes", "compressed_tensors",
                                         "fp8"),
                         [](const auto& each) { return std::string(each.param); });

struct Kept {
  Codes codes;
  int32_t group;
  bool has_min, act_order;
};

void expect_kept(const Checkpoint& checkpoint, const std::string& layer, const Kept& kept) {
  const CanonicalLinear weight = decode(checkpoint, layer);
  EXPECT_EQ(weight.codes_type, kept.codes) << layer;
  EXPECT_EQ(weight.group, kept.group) << layer;
  EXPECT_EQ(!weight.min.empty(), kept.has_min) << layer;
  EXPECT_EQ(!weight.g_idx.empty(), kept.act_order) << layer;
}

TEST(QuantizedLayout, CodesStayCodesAndGroupsAreFoundFromTheShapes) {
  const Checkpoint gptq = open("gptq");
  expect_kept(gptq, "sym", {Codes::kU4, 32, true, false});
  expect_kept(gptq, "act_order", {Codes::kU4, 32, true, true});
  expect_kept(gptq, "cut", {Codes::kU4, 32, true, false});
  expect_kept(gptq, "one_group", {Codes::kU4, 80, true, false});
  expect_kept(gptq, "bits2", {Codes::kU4, 32, true, false});
  expect_kept(gptq, "bits8", {Codes::kI8, 32, true, false});
  expect_kept(gptq, "bits8_sym", {Codes::kI8, 32, false, false});
  expect_kept(open("awq"), "cut", {Codes::kU4, 64, true, false});
  expect_kept(open("bitsandbytes"), "int8", {Codes::kI8, 40, false, false});
  expect_kept(open("bitsandbytes"), "nf4", {Codes::kBF16, 0, false, false});
  const Checkpoint compressed = open("compressed_tensors");
  expect_kept(compressed, "w8_one", {Codes::kI8, 40, false, false});
  expect_kept(compressed, "w8_groups", {Codes::kI8, 32, false, false});
  expect_kept(compressed, "w4_act_order", {Codes::kU4, 32, true, true});
  expect_kept(compressed, "w6_asym", {Codes::kI8, 32, true, false});
}

// A checkpoint of one layer, `part` of which `change` has spoiled.
Error refusal(const std::string& folder, const std::string& tensor,
              const std::function<void(TensorView&)>& change) {
  Checkpoint checkpoint = open(folder);
  change(checkpoint.tensors.at(tensor));
  const std::string layer = tensor.substr(0, tensor.find('.'));
  const Result<const Format*> format = find_format(checkpoint, layer);
  if (!format.ok()) return format.error();
  const Result<LinearLayout> layout = (*format)->layout(checkpoint, layer);
  EXPECT_FALSE(layout.ok()) << tensor;
  return layout.ok() ? Error{} : layout.error();
}

TEST(QuantizedLayout, PartsThatDoNotFitAreNamed) {
  const auto reshape = [](std::vector<int64_t> shape) {
    return [shape](TensorView& tensor) { tensor.shape = shape; };
  };
  const auto retype = [](StorageType type) {
    return [type](TensorView& tensor) { tensor.type = type, tensor.type_name = storage_type_name(type); };
  };
  EXPECT_THAT(refusal("gptq", "sym.qzeros", reshape({7, 9})).message,
              HasSubstr("sym.qzeros: expected I32 of 7 rows"));
  EXPECT_THAT(refusal("gptq", "sym.qzeros", retype(StorageType::kF32)).message,
              HasSubstr("found F32 [7, 8]"));
  EXPECT_THAT(refusal("gptq", "sym.scales", retype(StorageType::kI8)).message,
              HasSubstr("expected type F32, F16"));
  EXPECT_THAT(refusal("gptq", "bits3.qweight", reshape({10, 32})).message, HasSubstr("10 rows of words"));
  EXPECT_THAT(refusal("gptq", "act_order.g_idx", reshape({95})).message, HasSubstr("expected shape [96]"));
  EXPECT_THAT(refusal("awq", "whole.qzeros", reshape({2, 3})).message, HasSubstr("expected I32 [2, 4]"));
  EXPECT_THAT(refusal("bitsandbytes", "int8.SCB", reshape({23})).message,
              HasSubstr("expected 24 values, found 23"));
  EXPECT_THAT(refusal("bitsandbytes", "int8.weight_format",
                      [](TensorView& tensor) { tensor.data = tensor.data.subspan(0, 0); })
                  .message,
              HasSubstr("rows of this int8 weight"));
  EXPECT_THAT(refusal("bitsandbytes", "nf4.weight.absmax",
                      [](TensorView& tensor) { tensor.data = tensor.data.subspan(4); })
                  .message,
              HasSubstr("nf4.weight.absmax: expected 15 elements"));
  EXPECT_THAT(refusal("bitsandbytes", "nf4.weight.quant_state.bitsandbytes__nf4",
                      [](TensorView& tensor) { tensor.data = tensor.data.subspan(1); })
                  .message,
              HasSubstr("expected JSON with blocksize"));
  EXPECT_THAT(refusal("compressed_tensors", "w4.weight_packed", reshape({24, 13})).message,
              HasSubstr("1 to 8 bits"));
  EXPECT_THAT(refusal("compressed_tensors", "w4.weight_scale", reshape({23, 3})).message,
              HasSubstr("scales of 24 rows"));
  EXPECT_THAT(refusal("compressed_tensors", "w4_asym.weight_zero_point", reshape({32, 3})).message,
              HasSubstr("expected I32 [4, 3]"));
  EXPECT_THAT(refusal("compressed_tensors", "w4_act_order.weight_g_idx", retype(StorageType::kI64)).message,
              HasSubstr("expected I32 [96]"));
  EXPECT_THAT(refusal("fp8", "block.weight_scale_inv", reshape({4, 3})).message,
              HasSubstr("nor one a block of 16 x 16"));
}

TEST(QuantizedLayout, AGroupThatDoesNotExistIsRefused) {
  for (const auto& [folder, name] : std::map<std::string, std::string>{
           {"gptq", "act_order.g_idx"}, {"compressed_tensors", "w4_act_order.weight_g_idx"}}) {
    std::vector<int32_t> groups(96, 2);
    groups[17] = 3;
    const Error error =
        refusal(folder, name, [&](TensorView& tensor) { tensor.data = std::as_bytes(std::span(groups)); });
    EXPECT_EQ(error.code, Code::kCorrupt);
    EXPECT_THAT(error.message, HasSubstr("input 17 is in group 3, and there are 3"));
  }
}

TEST(QuantizedLayout, GroupsThatTheShapesLeaveInDoubtNeedTheConfig) {
  Checkpoint checkpoint = open("gptq");
  checkpoint.config["quantization_config"].erase("group_size");
  const Result<LinearLayout> layout = gptq_format().layout(checkpoint, "no_g_idx");
  ASSERT_FALSE(layout.ok());
  EXPECT_THAT(layout.error().message, HasSubstr("80 inputs in 3 groups are no whole groups"));
  EXPECT_TRUE(gptq_format().layout(checkpoint, "sym").ok());
}

TEST(QuantizedCheckpoint, AFileOfItsOwnMaySayHowItWasQuantised) {
  const TempFolder folder;
  EditableCheckpoint checkpoint("tiny/llama-untied");
  folder.write("quantize_config.json", R"({"bits": 4, "group_size": 128})");
  checkpoint.write(folder);
  const Result<Checkpoint> opened = open_checkpoint(folder.path());
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  EXPECT_EQ(opened->config["quantization_config"]["group_size"], 128);
  folder.write("quantize_config.json", "no JSON");
  EXPECT_THAT(open_checkpoint(folder.path()).error().message,
              HasSubstr("quantize_config.json is not valid JSON"));
}

TEST(QuantizedCheckpoint, WhatIsNotReadIsNamed) {
  const std::pair<const char*, const char*> parts[] = {
      {"B", "Marlin"},      {"q_weight", "EXL2"},       {"trellis", "EXL3"},
      {"W_q", "HQQ"},       {"codebooks", "AQLM"},      {"Qidxs", "QuIP#"},
      {"zeros", "BitBLAS"}, {"weight_packed", "NVFP4"}, {"compressed", "sparse"}};
  for (const auto& [part, name] : parts) {
    Checkpoint checkpoint;
    checkpoint.tensors[std::string("a.") + part] = {};
    const auto found = find_format(checkpoint, "a");
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.error().code, Code::kUnsupported);
    EXPECT_THAT(found.error().message,
                testing::AllOf(HasSubstr(name), HasSubstr("take the unquantised model")));
  }
  Checkpoint gemv;
  gemv.tensors["a.qweight"] = {"a.qweight", StorageType::kI32, "I32", {64, 16}, {}};
  gemv.tensors["a.qzeros"] = {"a.qzeros", StorageType::kI32, "I32", {64, 1}, {}};
  gemv.tensors["a.scales"] = {"a.scales", StorageType::kF16, "F16", {64, 8}, {}};
  EXPECT_THAT(find_format(gemv, "a").error().message, HasSubstr("AWQ's gemv layout"));
}

TEST(QuantizedCheckpoint, TheConfigIsOnlyAskedWhatTheTensorsCannotTell) {
  const auto check = [](const nlohmann::json& config) {
    Checkpoint checkpoint;
    checkpoint.config = {{"quantization_config", config}};
    return check_quantization(checkpoint);
  };
  EXPECT_TRUE(check(nullptr).ok());
  EXPECT_TRUE(check({{"quant_method", "gptq"}, {"checkpoint_format", "gptq_v2"}}).ok());
  EXPECT_TRUE(check({{"quant_method", "never heard of"}}).ok());
  EXPECT_EQ(check(5).error().code, Code::kCorrupt);
  EXPECT_THAT(check({{"checkpoint_format", "marlin"}}).error().message, HasSubstr("'marlin'"));
  EXPECT_THAT(check({{"is_marlin_format", true}}).error().message, HasSubstr("Marlin"));
  EXPECT_TRUE(check({{"is_marlin_format", false}}).ok());
  EXPECT_THAT(check({{"transform_config", {{"R1", 1}}}}).error().message, HasSubstr("transform_config"));
}

}  // namespace
}  // namespace whippet
