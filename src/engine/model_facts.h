// What the engine must know of a checkpoint beside its Model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace whippet {

struct ModelFacts {
  std::string name = {};              // label of the metrics
  std::string fingerprint = {};       // names weights and quantization; part of every cached block's name
  std::vector<int32_t> eos_ids = {};  // all that the checkpoint names: config, generation config, template
  int32_t vocab_used = 0;             // ids from here on are padding and never drawn (tokenizer.vocab_size())
};

}  // namespace whippet
