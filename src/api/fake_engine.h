// An Engine without weights: every row of a step draws the token that a function says. For measurements and
// tests of what stands above the engine; everything but the model is the real thing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "whippet/whippet.h"

namespace whippet {

struct FakeEngineOptions {
  std::filesystem::path model;  // a folder with a tokenizer and a chat template
  std::string name = "fake";
  int32_t max_model_len = 4096;
  int32_t max_num_seqs = 512;
  int32_t max_num_batched_tokens = 8192;
  int32_t block_size = 16;
  // Runs on the engine thread before a step's tokens come out; it may wait. The result is the token that
  // every row draws, -1: none could be. Steps count from 1; the first are the engine's warm-up.
  std::function<int32_t(int64_t step)> on_step;
};

struct FakeEngine {
  // Throws Failure where the folder has no tokenizer.
  static Engine make(const FakeEngineOptions& options);
};

}  // namespace whippet
