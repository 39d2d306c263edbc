// An opened checkpoint: its config and where each tensor lies, whatever container it came in (a folder of
// safetensors, or one GGUF file). Tensors are views into mapped files, which the checkpoint owns.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"

namespace whippet {

// The element or block types that tensors are stored in. GGUF's block types are decoded by formats/gguf.
enum class StorageType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kF64,
  kI8,
  kU8,
  kI16,
  kU16,
  kI32,
  kU32,
  kI64,
  kU64,
  kBool,
  kF8E4M3,
  kF8E5M2,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kOther,  // a known type that nothing here decodes; TensorView::type_name says which
};
const char* storage_type_name(StorageType type);
// Elements of one block and its bytes ({1, 4} for kF32, {32, 20} for kQ4_1, {256, 144} for kQ4_K).
struct BlockSize {
  int32_t elements;
  int32_t bytes;
};
BlockSize storage_block(StorageType type);  // {1, 0} for kOther

struct TensorView {
  std::string name;
  StorageType type = StorageType::kF32;
  std::string type_name;            // as the file spells it: "BF16", "Q4_1", "IQ4_NL"
  std::vector<int64_t> shape;       // row-major, slowest first ([out, in] for a linear weight)
  std::span<const std::byte> data;  // maybe unaligned
};

struct Checkpoint {
  enum class Container : uint8_t { kSafetensors, kGguf };

  Container container = Container::kSafetensors;
  std::filesystem::path path;  // the folder, or the .gguf file
  nlohmann::json config;       // config.json; for GGUF its metadata in config.json's spelling
  nlohmann::json gguf;  // GGUF metadata as it stands, arrays of the vocabulary included; null otherwise
  std::vector<MappedFile> files;
  std::unordered_map<std::string, TensorView> tensors;

  const TensorView* find(std::string_view name) const;
  // kNotFound names the tensor; kCorrupt names it with the expected and the found shape.
  Result<const TensorView*> require(std::string_view name, std::span<const int64_t> shape) const;
};

// A folder with config.json and safetensors (single or sharded), a folder with one .gguf, or a .gguf file.
// Pickled .bin weights and unknown containers are refused by name with what to do.
Result<Checkpoint> open_checkpoint(const std::filesystem::path& path);

}  // namespace whippet
