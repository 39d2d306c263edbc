#include "model/golden_testing.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "backend/registry.h"
#include "base/mapped_file.h"
#include "model/checkpoint_testing.h"
#include "model/safetensors.h"

namespace whippet {

Result<std::vector<Golden>> read_goldens(const std::filesystem::path& folder) {
  WH_ASSIGN(const MappedFile file, MappedFile::open(folder / "golden_logits.safetensors"));
  WH_ASSIGN(const std::vector<TensorView> tensors, parse_safetensors(file.bytes(), folder.string()));
  std::vector<Golden> goldens;
  std::ifstream lines(folder / "golden.jsonl");
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json json = nlohmann::json::parse(line);
    Golden golden{json["input_ids"], json["greedy_ids"], {}};
    for (const TensorView& tensor : tensors) {
      if (tensor.name != json["logits"]) continue;
      golden.logits.resize(tensor.data.size() / sizeof(float));
      std::memcpy(golden.logits.data(), tensor.data.data(), tensor.data.size());
    }
    goldens.push_back(std::move(golden));
  }
  if (goldens.empty()) return make_error(Code::kNotFound, "{} has no golden.jsonl", folder.string());
  return goldens;
}

Result<GoldenModel> load_for_test(const std::filesystem::path& path, ComputeType compute) {
  GoldenModel out;
  WH_ASSIGN(const Checkpoint checkpoint, open_checkpoint(path));
  WH_ASSIGN(out.backend, make_backend("cpu", {}));
  WH_ASSIGN(out.model, load_model(checkpoint, *out.backend, compute));
  return out;
}

double max_relative_error(const std::vector<float>& found, const std::vector<float>& expected) {
  if (found.size() != expected.size()) return std::numeric_limits<double>::infinity();
  double largest = 0;
  double error = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    if (std::isnan(found[i])) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
    error = std::max(error, std::abs(static_cast<double>(found[i]) - expected[i]));
  }
  return error / largest;
}

double rms_relative_error(const std::vector<float>& found, const std::vector<float>& expected) {
  if (found.size() != expected.size()) return std::numeric_limits<double>::infinity();
  double squares = 0;
  double errors = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const double difference = static_cast<double>(found[i]) - expected[i];
    squares += static_cast<double>(expected[i]) * expected[i];
    errors += difference * difference;
  }
  return std::sqrt(errors / squares);
}

std::vector<std::filesystem::path> golden_folders() {
  std::vector<std::filesystem::path> folders;
  const std::filesystem::path shared = std::filesystem::path(WHIPPET_SOURCE_DIR) / ".." / "shared" / "data";
  for (const auto& parent : {test_data("tiny"), test_data("gguf"), shared / "tiny"}) {
    std::error_code absent;
    for (const auto& entry : std::filesystem::directory_iterator(parent, absent)) {
      if (std::filesystem::exists(entry.path() / "golden.jsonl")) folders.push_back(entry.path());
    }
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

}  // namespace whippet
