#include "model/families/rope_config.h"

#include <string>

namespace whippet {
namespace {

constexpr double kMaxTheta = 1e12;
constexpr double kMaxFactor = 1e4;

void read_scaling(ConfigReader& config, ConfigReader& scaling, const ModelSpec& spec, RopeSpec& rope) {
  const std::string type = scaling.text_or("rope_type", scaling.text_or("type", "default"));
  if (type == "default") return;
  if (type == "linear") {
    rope.scaling = RopeScaling::kLinear;
  } else if (type == "dynamic") {
    rope.scaling = RopeScaling::kDynamicNtk;
  } else if (type == "llama3") {
    rope.scaling = RopeScaling::kLlama3;
  } else {
    config.fail(Code::kUnsupported,
                "RoPE scaling of type '{}' is not implemented; default, linear, dynamic and llama3 are",
                type);
    return;
  }
  rope.factor = static_cast<float>(scaling.number("factor", 1, kMaxFactor));
  rope.original_max_position = spec.max_position;
  if (rope.scaling == RopeScaling::kDynamicNtk && spec.head_dim <= 2) {
    config.fail(Code::kCorrupt, "dynamic RoPE scaling needs a head_dim above 2, found {}", spec.head_dim);
  }
  if (rope.scaling != RopeScaling::kLlama3) return;
  rope.original_max_position =
      scaling.integer_or("original_max_position_embeddings", spec.max_position, 1, kMaxPosition);
  rope.low_freq_factor = static_cast<float>(scaling.number("low_freq_factor", 1e-3, kMaxFactor));
  rope.high_freq_factor = static_cast<float>(scaling.number("high_freq_factor", 1e-3, kMaxFactor));
  if (!(rope.low_freq_factor < rope.high_freq_factor)) {
    config.fail(Code::kCorrupt, "RoPE scaling: low_freq_factor {} must be below high_freq_factor {}",
                rope.low_freq_factor, rope.high_freq_factor);
  }
}

}  // namespace

RopeSpec read_rope(ConfigReader& config, const ModelSpec& spec) {
  RopeSpec rope;
  double theta = config.number_or("rope_theta", 10000, 1, kMaxTheta);
  const bool newer = config.find("rope_parameters") != nullptr;
  const char* key = newer ? "rope_parameters" : "rope_scaling";
  if (const nlohmann::json* object = config.find(key)) {
    if (!object->is_object()) {
      config.fail(Code::kCorrupt, "{}: expected an object, found a {}", key, object->type_name());
      return rope;
    }
    ConfigReader scaling(*object, key);
    if (scaling.find("full_attention") != nullptr || scaling.find("sliding_attention") != nullptr) {
      config.fail(Code::kUnsupported, "{} differs between layers, which is not implemented", key);
    }
    theta = scaling.number_or("rope_theta", theta, 1, kMaxTheta);
    read_scaling(config, scaling, spec, rope);
    const Status status = scaling.status();
    if (!status.ok()) config.fail(status.error().code, "{}", status.error().message);
  }
  rope.theta = static_cast<float>(theta);
  return rope;
}

}  // namespace whippet
