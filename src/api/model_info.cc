#include "api/model_info.h"

#include <map>
#include <string>

#include "api/sampling_fields.h"
#include "model/formats/format.h"

namespace whippet {
namespace {

using nlohmann::ordered_json;

const char* rope_name(RopeScaling scaling) {
  switch (scaling) {
    case RopeScaling::kNone:
      return "none";
    case RopeScaling::kLinear:
      return "linear";
    case RopeScaling::kLlama3:
      return "llama3";
    case RopeScaling::kDynamicNtk:
      return "dynamic";
    case RopeScaling::kFactors:
      return "factors";
  }
  return "?";
}

// "model.layers.3.self_attn.q_proj.weight" and its like of the other layers are one kind: digits become '*'.
std::string kind_of(const std::string& name) {
  std::string kind;
  for (size_t i = 0; i < name.size();) {
    size_t end = i;
    while (end < name.size() && name[end] >= '0' && name[end] <= '9') ++end;
    const bool whole_part =
        end > i && (i == 0 || name[i - 1] == '.') && (end == name.size() || name[end] == '.');
    if (whole_part) {
      kind += '*';
      i = end;
    } else {
      kind += name[i++];
    }
  }
  return kind;
}

ordered_json weights_of(const Checkpoint& checkpoint) {
  struct Kind {
    std::map<std::string, int64_t> types;  // type name -> tensors of it
    std::vector<int64_t> shape;            // of the last one seen
  };
  std::map<std::string, Kind> kinds;
  std::map<std::string, uint64_t> bytes_of_type;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    Kind& kind = kinds[kind_of(name)];
    ++kind.types[tensor.type_name];
    kind.shape = tensor.shape;
    bytes_of_type[tensor.type_name] += tensor.data.size();
  }
  ordered_json weights = {
      {"container", checkpoint.container == Checkpoint::Container::kGguf ? "gguf" : "safetensors"},
      {"formats", stored_formats(checkpoint)},
      {"tensors", checkpoint.tensors.size()},
      {"bytes", stored_bytes(checkpoint)},
      {"bytes_by_type", bytes_of_type}};
  for (const auto& [name, kind] : kinds)
    weights["kinds"][name] = {{"shape", kind.shape}, {"types", kind.types}};
  return weights;
}

ordered_json sizes_of(const ModelSpec& spec) {
  ordered_json sizes = {{"vocab_size", spec.vocab_size},
                        {"hidden_size", spec.hidden_size},
                        {"num_layers", spec.num_layers},
                        {"num_q_heads", spec.num_q_heads},
                        {"num_kv_heads", spec.num_kv_heads},
                        {"head_dim", spec.head_dim},
                        {"intermediate_size", spec.intermediate_size},
                        {"max_position", spec.max_position},
                        {"tied_embedding", spec.tied_embedding},
                        {"qkv_bias", spec.qkv_bias},
                        {"qk_norm", spec.qk_norm},
                        {"rope_theta", spec.rope.theta},
                        {"rope_scaling", rope_name(spec.rope.scaling)}};
  int32_t windowed = 0;
  for (const int32_t window : spec.window_of_layer) windowed += window > 0;
  sizes["sliding_window_layers"] = windowed;
  return sizes;
}

ordered_json tokenizer_of(const ModelFiles& files) {
  if (!files.tokenizer) return {{"kind", nullptr}, {"problem", files.tokenizer_problem}};
  const Tokenizer& tokenizer = *files.tokenizer;
  const auto token = [&](std::optional<int32_t> id) {
    if (!id) return ordered_json();
    return ordered_json{{"id", *id}, {"text", std::string(tokenizer.token_bytes(*id))}};
  };
  return {{"kind", tokenizer.kind_name()},
          {"vocab_size", tokenizer.vocab_size()},
          {"bos", token(tokenizer.bos_id())},
          {"eos", token(tokenizer.eos_id())},
          {"adds_bos", tokenizer.adds_bos()}};
}

ordered_json template_of(const ModelFiles& files) {
  if (!files.templates.plain) return {{"file", nullptr}, {"problem", files.templates.problem}};
  ordered_json names = ordered_json::array();
  for (const NamedTemplate& chat : files.templates.sources) names.push_back(chat.name);
  return {{"file", files.templates.sources.front().file}, {"names", names}};
}

}  // namespace

uint64_t stored_bytes(const Checkpoint& checkpoint) {
  uint64_t bytes = 0;
  for (const auto& [name, tensor] : checkpoint.tensors) bytes += tensor.data.size();
  return bytes;
}

ordered_json describe_model(const ResolvedModel& source, const Checkpoint& checkpoint, const ModelSpec& spec,
                            const ModelFiles& files) {
  const std::string& licence = source.licence.empty() ? files.licence : source.licence;
  ordered_json eos = ordered_json::array();
  for (const int32_t id : files.eos_ids) {
    const std::string text = files.tokenizer ? std::string(files.tokenizer->token_bytes(id)) : "";
    eos.push_back({{"id", id}, {"text", text}});
  }
  const GenerationDefaults& generation = files.generation;
  ordered_json sampling = {
      {"source", generation.source.empty() ? ordered_json() : ordered_json(generation.source)},
      {"named", generation.named},
      {"params", sampling_to_json(generation.params)}};
  return {{"model", source.name},
          {"revision", source.revision},
          {"path", source.path.string()},
          {"licence", licence.empty() ? ordered_json() : ordered_json(licence)},
          {"family", spec.family},
          {"architecture", spec.architecture},
          {"parameters", spec.num_parameters()},
          {"sizes", sizes_of(spec)},
          {"weights", weights_of(checkpoint)},
          {"tokenizer", tokenizer_of(files)},
          {"chat_template", template_of(files)},
          {"end_tokens", eos},
          {"default_sampling", sampling}};
}

}  // namespace whippet
