#include "model/checkpoint_testing.h"

#include <unistd.h>

#include <cstring>
#include <fstream>

#include "model/safetensors.h"
#include "tensor/dtype.h"

namespace whippet {

std::filesystem::path test_data(const std::string& name) {
  return std::filesystem::path(WHIPPET_SOURCE_DIR) / "tests" / "data" / name;
}

TempFolder::TempFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "whippet_test.XXXXXX").string();
  WH_CHECK(::mkdtemp(name.data()) != nullptr, "cannot make {}", name);
  path_ = name;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void TempFolder::write(const std::string& name, const std::string& content) const {
  std::ofstream(path_ / name, std::ios::binary) << content;
}

EditableCheckpoint::EditableCheckpoint(const std::string& name) {
  Result<Checkpoint> checkpoint = open_checkpoint(test_data(name));
  WH_CHECK(checkpoint.ok(), "{}", checkpoint.error().message);
  config = checkpoint->config;
  for (const auto& [key, tensor] : checkpoint->tensors) {
    tensors[key] = {tensor.type, tensor.shape, {tensor.data.begin(), tensor.data.end()}};
  }
}

std::vector<float> EditableCheckpoint::values(const std::string& name) const {
  const Tensor& tensor = tensors.at(name);
  const auto size = static_cast<size_t>(storage_block(tensor.type).bytes);
  std::vector<float> out(tensor.data.size() / size);
  for (size_t i = 0; i < out.size(); ++i) {
    if (tensor.type == StorageType::kF32) {
      std::memcpy(&out[i], tensor.data.data() + i * size, size);
    } else {
      uint16_t bits;
      std::memcpy(&bits, tensor.data.data() + i * size, size);
      out[i] = tensor.type == StorageType::kF16 ? f16_to_f32(bits) : bf16_to_f32(bits);
    }
  }
  return out;
}

void EditableCheckpoint::set_values(const std::string& name, std::vector<int64_t> shape,
                                    const std::vector<float>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  tensors[name] = {StorageType::kF32, std::move(shape), {bytes.begin(), bytes.end()}};
}

void EditableCheckpoint::write(const TempFolder& folder, int shards) const {
  folder.write("config.json", config.dump());
  std::vector<std::vector<TensorView>> files(static_cast<size_t>(shards));
  nlohmann::json weight_map = nlohmann::json::object();
  size_t next = 0;
  for (const auto& [name, tensor] : tensors) {
    const size_t file = next++ % files.size();
    files[file].push_back({name, tensor.type, "", tensor.shape, tensor.data});
    weight_map[name] = fmt::format("model-{:05}-of-{:05}.safetensors", file + 1, shards);
  }
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string name =
        shards == 1 ? "model.safetensors" : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards);
    const Status status = write_safetensors(folder.path() / name, files[i]);
    WH_CHECK(status.ok(), "{}", status.error().message);
  }
  if (shards > 1) {
    folder.write("model.safetensors.index.json", nlohmann::json{{"weight_map", weight_map}}.dump());
  }
}

}  // namespace whippet
