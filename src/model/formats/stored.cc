#include "model/formats/stored.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "tensor/dtype.h"

namespace whippet {
namespace {

void add_number(const nlohmann::json& object, const char* key, std::vector<int64_t>& to) {
  const auto found = object.find(key);
  if (found != object.end() && found->is_number_integer()) to.push_back(found->get<int64_t>());
}

// The group sizes that a config speaks of: compressed-tensors has several, one a group of layers.
std::vector<int64_t> said_sizes(const nlohmann::json& config) {
  std::vector<int64_t> sizes;
  add_number(config, "group_size", sizes);
  add_number(config, "q_group_size", sizes);
  const auto groups = config.find("config_groups");
  if (groups == config.end() || !groups->is_object()) return sizes;
  for (const nlohmann::json& group : *groups) {
    if (!group.is_object()) continue;
    const auto weights = group.find("weights");
    if (weights != group.end() && weights->is_object()) add_number(*weights, "group_size", sizes);
  }
  return sizes;
}

}  // namespace

bool is_float_type(StorageType type) {
  return type == StorageType::kF32 || type == StorageType::kF16 || type == StorageType::kBF16;
}

float float_at(const TensorView& tensor, int64_t index) {
  switch (tensor.type) {
    case StorageType::kF16:
      return f16_to_f32(stored_at<uint16_t>(tensor, index));
    case StorageType::kBF16:
      return bf16_to_f32(stored_at<uint16_t>(tensor, index));
    default:
      return stored_at<float>(tensor, index);
  }
}

Result<const TensorView*> require_dims(const Checkpoint& checkpoint, const std::string& name, size_t dims) {
  const TensorView* tensor = checkpoint.find(name);
  if (tensor == nullptr) return make_error(Code::kNotFound, "the checkpoint has no tensor {}", name);
  bool fits = tensor->shape.size() == dims;
  for (const int64_t dim : tensor->shape)
    fits = fits && dim > 0 && dim <= std::numeric_limits<int32_t>::max();
  if (!fits) {
    return make_error(Code::kCorrupt, "tensor {}: expected {} dimensions, found shape [{}]", name, dims,
                      fmt::join(tensor->shape, ", "));
  }
  return tensor;
}

Result<const TensorView*> require_floats(const Checkpoint& checkpoint, const std::string& name, size_t dims) {
  WH_ASSIGN(const TensorView* tensor, require_dims(checkpoint, name, dims));
  if (!is_float_type(tensor->type)) {
    return make_error(Code::kUnsupported, "tensor {}: expected type F32, F16 or BF16, found {}", name,
                      tensor->type_name);
  }
  return tensor;
}

Result<int32_t> group_size(const Checkpoint& checkpoint, const std::string& tensor, int64_t in,
                           int64_t groups) {
  const auto agrees = [&](int64_t size) { return size > 0 && (in + size - 1) / size == groups; };
  if (groups == 1) return static_cast<int32_t>(in);
  const std::vector<int64_t> said = said_sizes(quantization_config(checkpoint));
  const auto found = std::find_if(said.begin(), said.end(), agrees);
  if (found != said.end()) return static_cast<int32_t>(*found);
  if (in % groups == 0) return static_cast<int32_t>(in / groups);
  return make_error(
      Code::kCorrupt,
      "tensor {}: {} inputs in {} groups are no whole groups, and the config says group_size [{}]", tensor,
      in, groups, fmt::join(said, ", "));
}

Result<std::vector<int32_t>> read_group_of_input(const TensorView& tensor, int32_t groups) {
  std::vector<int32_t> group_of(tensor.data.size() / sizeof(int32_t));
  for (size_t i = 0; i < group_of.size(); ++i) {
    group_of[i] = stored_at<int32_t>(tensor, static_cast<int64_t>(i));
    if (group_of[i] < 0 || group_of[i] >= groups) {
      return make_error(Code::kCorrupt, "tensor {}: input {} is in group {}, and there are {}", tensor.name,
                        i, group_of[i], groups);
    }
  }
  return group_of;
}

const nlohmann::json& quantization_config(const Checkpoint& checkpoint) {
  static const nlohmann::json none = nlohmann::json::object();
  for (const char* key : {"quantization_config", "compression_config"}) {
    const auto found = checkpoint.config.find(key);
    if (found != checkpoint.config.end() && found->is_object()) return *found;
  }
  return none;
}

}  // namespace whippet
