#include "api/quantization.h"

#include <algorithm>
#include <iterator>

#include "model/formats/format.h"

namespace whippet {
namespace {

// Users' words, most of them vLLM's, for the formats that a checkpoint may have.
struct Spelling {
  const char* word;
  const char* format;  // the beginning of its name
};
constexpr Spelling kSpellings[] = {{"gptq", "gptq"},
                                   {"gptq_marlin", "gptq"},
                                   {"awq", "awq"},
                                   {"awq_marlin", "awq"},
                                   {"bitsandbytes", "bitsandbytes"},
                                   {"compressed-tensors", "compressed-tensors"},
                                   {"fp8", "fp8"},
                                   {"gguf", "gguf"}};

}  // namespace

Result<OnLoad> read_quantization(const std::string& quantization, const Checkpoint& checkpoint) {
  if (quantization.empty() || quantization == "none") return OnLoad::kKeep;
  if (quantization == "int8") return OnLoad::kInt8;
  if (quantization == "int4") return OnLoad::kInt4;
  const auto* spelling = std::find_if(std::begin(kSpellings), std::end(kSpellings),
                                      [&](const Spelling& each) { return quantization == each.word; });
  WH_CHECK(spelling != std::end(kSpellings), "{}", quantization);
  const std::vector<std::string> stored = stored_formats(checkpoint);
  const bool is_stored = std::any_of(stored.begin(), stored.end(), [&](const std::string& format) {
    return format.starts_with(spelling->format);
  });
  if (is_stored) return OnLoad::kKeep;
  return make_error(
      Code::kInvalidArgument,
      "quantization: '{}' names how a checkpoint is stored, and this one is stored as {}; leave it "
      "out, or take int8 or int4 to quantize while loading",
      quantization, fmt::join(stored, ", "));
}

}  // namespace whippet
