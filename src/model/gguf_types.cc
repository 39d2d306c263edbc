#include "model/gguf_types.h"

namespace whippet {
namespace {

// Those without a StorageType are known by size, so that a file with some of them is still
// checked whole.
constexpr GgmlType kTypes[] = {
    {0, "F32", StorageType::kF32, {1, 4}},
    {1, "F16", StorageType::kF16, {1, 2}},
    {2, "Q4_0", StorageType::kQ4_0, {32, 18}},
    {3, "Q4_1", StorageType::kQ4_1, {32, 20}},
    {6, "Q5_0", StorageType::kQ5_0, {32, 22}},
    {7, "Q5_1", StorageType::kQ5_1, {32, 24}},
    {8, "Q8_0", StorageType::kQ8_0, {32, 34}},
    {9, "Q8_1", StorageType::kOther, {32, 36}},
    {10, "Q2_K", StorageType::kOther, {256, 84}},
    {11, "Q3_K", StorageType::kOther, {256, 110}},
    {12, "Q4_K", StorageType::kQ4_K, {256, 144}},
    {13, "Q5_K", StorageType::kQ5_K, {256, 176}},
    {14, "Q6_K", StorageType::kQ6_K, {256, 210}},
    {15, "Q8_K", StorageType::kOther, {256, 292}},
    {16, "IQ2_XXS", StorageType::kOther, {256, 66}},
    {17, "IQ2_XS", StorageType::kOther, {256, 74}},
    {18, "IQ3_XXS", StorageType::kOther, {256, 98}},
    {19, "IQ1_S", StorageType::kOther, {256, 50}},
    {20, "IQ4_NL", StorageType::kOther, {32, 18}},
    {21, "IQ3_S", StorageType::kOther, {256, 110}},
    {22, "IQ2_S", StorageType::kOther, {256, 82}},
    {23, "IQ4_XS", StorageType::kOther, {256, 136}},
    {24, "I8", StorageType::kI8, {1, 1}},
    {25, "I16", StorageType::kI16, {1, 2}},
    {26, "I32", StorageType::kI32, {1, 4}},
    {27, "I64", StorageType::kI64, {1, 8}},
    {28, "F64", StorageType::kF64, {1, 8}},
    {29, "IQ1_M", StorageType::kOther, {256, 56}},
    {30, "BF16", StorageType::kBF16, {1, 2}},
    {31, "Q4_0_4_4", StorageType::kOther, {32, 18}},
    {32, "Q4_0_4_8", StorageType::kOther, {32, 18}},
    {33, "Q4_0_8_8", StorageType::kOther, {32, 18}},
    {34, "TQ1_0", StorageType::kOther, {256, 54}},
    {35, "TQ2_0", StorageType::kOther, {256, 66}},
    {39, "MXFP4", StorageType::kOther, {32, 17}},
    {40, "NVFP4", StorageType::kOther, {64, 36}},
    {41, "Q1_0", StorageType::kOther, {128, 18}},
};

}  // namespace

const GgmlType* find_ggml_type(uint32_t id) {
  for (const GgmlType& type : kTypes) {
    if (type.id == id) return &type;
  }
  return nullptr;
}

}  // namespace whippet
