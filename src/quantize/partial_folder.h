// What a quantization that was interrupted has finished: OUT.partial, with a file of tensors and one of
// errors for each layer, and the settings that they were made with. Used by the quantizer.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "base/error.h"
#include "quantize/coded_layer.h"

namespace whippet {

class PartialFolder {
 public:
  // Makes the folder beside `out`, or goes on with the one that is there. kInvalidArgument where `out` holds
  // something, or where the partial folder was made with other settings.
  static Result<PartialFolder> open(const std::filesystem::path& out, const nlohmann::json& settings);

  bool has(int32_t layer) const;
  Status save(int32_t layer, std::span<const OwnedTensor> tensors, const nlohmann::json& report) const;
  // Replaces what the checkpoint holds of the layer's weights by what was saved. The report of save().
  Result<nlohmann::json> overlay(int32_t layer, Checkpoint& checkpoint) const;

  // Where the result is built before it gets its name.
  std::filesystem::path result() const { return path_ / "model"; }
  // Gives result() the name `out`, and removes the rest.
  Status publish() const;

 private:
  std::filesystem::path file_of(int32_t layer, const char* kind) const;

  std::filesystem::path out_;
  std::filesystem::path path_;
};

}  // namespace whippet
