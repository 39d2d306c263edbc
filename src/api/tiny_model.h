// A model for tests, made on the spot.
#pragma once

#include "api/test_folder.h"

namespace whippet {

// Writes a llama of 2 layers with random weights, a byte-level tokenizer (one token a byte; 256 is
// <|im_start|>, 257 <|im_end|>, which ends an answer) and ChatML into the folder. Its context has
// `max_position` tokens.
void write_tiny_model(const TestFolder& folder, int max_position = 256);

}  // namespace whippet
