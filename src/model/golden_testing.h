// For tests: what a checkpoint's folder says its model must compute (golden.jsonl, golden_logits.safetensors,
// made by tools/make_goldens.py), and models loaded on the CPU to compare with it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "model/checkpoint.h"
#include "model/loader.h"

namespace whippet {

struct Golden {
  std::vector<int32_t> input_ids;
  std::vector<int32_t> greedy_ids;
  std::vector<float> logits;  // [input_ids, vocab]
};

Result<std::vector<Golden>> read_goldens(const std::filesystem::path& folder);

// A model with the backend that it is packed for.
struct GoldenModel {
  std::unique_ptr<Backend> backend;
  Model model;
};
Result<GoldenModel> load_for_test(const std::filesystem::path& path, ComputeType compute);

// The largest difference, relative to the largest expected value; infinite where sizes differ or a value is
// NaN.
double max_relative_error(const std::vector<float>& found, const std::vector<float>& expected);
// The root mean square of the differences, relative to that of the expected values.
double rms_relative_error(const std::vector<float>& found, const std::vector<float>& expected);

// Folders of checkpoints with goldens: the project's own, and those of ../shared where it is there.
std::vector<std::filesystem::path> golden_folders();

}  // namespace whippet
