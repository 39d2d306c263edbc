// Any bytes as a GGUF file: parsed, its metadata read as a config and a spec, and the first and last row of
// each matrix decoded.
#include <cstdint>
#include <span>

#include "model/family.h"
#include "model/fuzz_decode.h"
#include "model/gguf.h"
#include "model/gguf_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace whippet;
  Result<GgufFile> file = parse_gguf(std::as_bytes(std::span(data, size)), "fuzz");
  if (!file.ok()) return 0;
  const Result<nlohmann::json> config = gguf_config(*file);
  if (config.ok()) {
    const Result<const Family*> family = find_family(*config);
    if (family.ok()) {
      const Result<ModelSpec> spec = (*family)->spec(*config);
      if (spec.ok()) rope_frequencies(*spec, spec->max_position);
    }
  }
  decode_some_rows(std::move(file->tensors));
  return 0;
}
