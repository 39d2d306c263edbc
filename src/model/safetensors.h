// The safetensors container (huggingface/safetensors, README and tensor.rs): reading trusts nothing that the
// file says; writing is atomic. Used by the checkpoint, by `whippet logits --out` and by the quantizer.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "model/checkpoint.h"

namespace whippet {

// The tensors of one file; their data are views into `file`. kCorrupt where header, offsets, shapes or sizes
// disagree with each other or with the file. `label` names the file in messages.
Result<std::vector<TensorView>> parse_safetensors(std::span<const std::byte> file, std::string_view label);

// Writes a file piece by piece: the tensors' names, types and shapes are declared first (their data ignored),
// then their bytes are appended in the same order. The file appears under its name only on commit; a writer
// that is dropped before leaves nothing.
class SafetensorsWriter {
 public:
  static Result<SafetensorsWriter> create(const std::filesystem::path& path,
                                          std::span<const TensorView> tensors);
  SafetensorsWriter(SafetensorsWriter&& other) noexcept = default;
  SafetensorsWriter& operator=(SafetensorsWriter&& other) = delete;
  ~SafetensorsWriter();

  Status append(std::span<const std::byte> bytes);
  // All declared bytes must have been appended.
  Status commit();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  SafetensorsWriter(std::filesystem::path path, std::filesystem::path temporary, std::FILE* file);
  Error write_error(const char* what) const;

  std::filesystem::path path_;
  std::filesystem::path temporary_;  // beside path_, renamed to it on commit
  std::unique_ptr<std::FILE, Close> file_;
  uint64_t bytes_left_ = 0;
};

// The whole file at once: `data` of each tensor must fit its type and shape.
Status write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors);

}  // namespace whippet
