// Any bytes as a safetensors file: parsed, and the first and last row of each matrix decoded.
#include <cstdint>
#include <span>

#include "model/fuzz_decode.h"
#include "model/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace whippet;
  Result<std::vector<TensorView>> tensors = parse_safetensors(std::as_bytes(std::span(data, size)), "fuzz");
  if (tensors.ok()) decode_some_rows(std::move(*tensors));
  return 0;
}
