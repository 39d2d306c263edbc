#include <iterator>

#include "model/checkpoint.h"

namespace whippet {
namespace {

struct TypeFacts {
  const char* name;
  BlockSize block;
};

// In the order of StorageType.
constexpr TypeFacts kTypes[] = {
    {"F32", {1, 4}},      {"F16", {1, 2}},      {"BF16", {1, 2}},     {"F64", {1, 8}},
    {"I8", {1, 1}},       {"U8", {1, 1}},       {"I16", {1, 2}},      {"U16", {1, 2}},
    {"I32", {1, 4}},      {"U32", {1, 4}},      {"I64", {1, 8}},      {"U64", {1, 8}},
    {"BOOL", {1, 1}},     {"F8_E4M3", {1, 1}},  {"F8_E5M2", {1, 1}},  {"Q4_0", {32, 18}},
    {"Q4_1", {32, 20}},   {"Q5_0", {32, 22}},   {"Q5_1", {32, 24}},   {"Q8_0", {32, 34}},
    {"Q4_K", {256, 144}}, {"Q5_K", {256, 176}}, {"Q6_K", {256, 210}}, {"other", {1, 0}},
};
static_assert(std::size(kTypes) == static_cast<size_t>(StorageType::kOther) + 1);

}  // namespace

const char* storage_type_name(StorageType type) { return kTypes[static_cast<size_t>(type)].name; }

BlockSize storage_block(StorageType type) { return kTypes[static_cast<size_t>(type)].block; }

}  // namespace whippet
